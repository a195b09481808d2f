import json

import numpy as np
import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.metrics import (
    ImageScores,
    aurc,
    brier,
    disagreement,
    ece,
    ece_debiased,
    ece_rms,
    ece_rms_debiased,
    error,
    image_scores,
    mean_pairwise_kl,
    nll,
    noise_floor,
    summarise,
)
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.summary import floors, honest, risk_coverage_points


def some_probs(members: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(5, 0.4), size=(members, 80)), rng.integers(5, size=80)


def scores_by_name(probs_NK: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    confidence, correct = probs_NK.max(1), probs_NK.argmax(1) == labels
    return {
        "error": error(probs_NK, labels),
        "nll": nll(probs_NK, labels),
        "brier": brier(probs_NK, labels),
        "ece_width15": ece(confidence, correct, 15, "width"),
        "ece_rms_width15": ece_rms(confidence, correct, 15, "width"),
        "ece_mass15": ece(confidence, correct, 15, "mass"),
        "ece_rms_mass15": ece_rms(confidence, correct, 15, "mass"),
        "mean_confidence": confidence.mean(),
        "overconfidence": confidence.mean() - (1 - error(probs_NK, labels)),
        "aurc": aurc(confidence, correct),
    }


def test_each_figure_is_the_metric_of_its_name() -> None:
    probs, labels = some_probs(members=3)
    summary = summarise(probs, labels)
    assert list(summary) == ["ensemble", "members", "disagreement", "pairwise_kl", "honest", "reliability"]
    assert summary["ensemble"] == pytest.approx(scores_by_name((probs[0] + probs[1] + probs[2]) / 3, labels))
    assert summary["members"] == [pytest.approx(scores_by_name(member, labels)) for member in probs]
    assert summary["disagreement"] == disagreement(probs)
    assert summary["pairwise_kl"] == mean_pairwise_kl(probs)


def test_each_predictor_is_judged_honestly() -> None:
    probs, labels = some_probs(members=2)
    summary = summarise(probs, labels)
    assert summary["honest"]["ensemble"] == honest(image_scores(probs.mean(axis=0), labels))
    assert summary["honest"]["members"] == [honest(image_scores(member, labels)) for member in probs]
    without = summarise(probs, labels, honest_members=False)
    assert without == summary | {"honest": {"ensemble": summary["honest"]["ensemble"], "members": []}}


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_honest_rows_are_floor_excess_and_debiased_estimate(binning: Binning) -> None:
    probs, labels = some_probs(members=1)
    scores = image_scores(probs[0], labels)
    confidence, correct = scores.confidence, scores.correct
    floor = noise_floor(confidence, correct, 15, binning)
    rows = honest(scores)
    assert len(rows) == 4
    for key, observed, mean, debiased in (
        (f"ece_{binning}15", ece(confidence, correct, 15, binning), floor.ece_mean, ece_debiased),
        (f"ece_rms_{binning}15", ece_rms(confidence, correct, 15, binning), floor.ece_rms_mean, ece_rms_debiased),
    ):
        interval = debiased(confidence, correct, 15, binning)
        assert rows[key] == {
            "floor": mean,
            "excess": pytest.approx(observed - mean),
            "debiased": interval.value,
            "low": interval.low,
            "high": interval.high,
        }
        assert floors(scores)[f"{key}_floor"] == mean


def test_a_short_curve_has_a_point_per_image() -> None:
    confidence = np.array([0.5, 0.9, 0.8, 0.6])
    correct = np.array([False, True, True, False])
    curve = risk_coverage_points(ImageScores(confidence, correct, confidence, confidence))
    assert curve == {"coverage": [0.25, 0.5, 0.75, 1.0], "risk": [0.0, 0.0, pytest.approx(1 / 3), 0.5]}


def test_a_long_curve_has_a_point_per_hundredth() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(250), rng.random(250) < 0.7
    curve = risk_coverage_points(ImageScores(confidence, correct, confidence, confidence))
    wrong_sure_first = ~correct[np.argsort(-confidence)]
    assert len(curve["coverage"]) == 100
    assert curve["coverage"][:3] == [3 / 250, 5 / 250, 8 / 250], "hundredths, rounded up to whole images"
    assert curve["risk"][:3] == pytest.approx([wrong_sure_first[:kept].mean() for kept in (3, 5, 8)])
    assert curve["risk"][-1] == pytest.approx(wrong_sure_first.mean())


@pytest.mark.parametrize("binning", ["width15", "mass15"])
def test_the_bins_add_up_to_the_ece(binning: str) -> None:
    summary = summarise(*some_probs(members=3))
    rows = summary["reliability"][binning]
    assert all(list(row) == ["low", "high", "count", "confidence", "accuracy"] for row in rows)
    assert sum(row["count"] for row in rows) == 80
    gaps = sum(row["count"] * abs(row["accuracy"] - row["confidence"]) for row in rows)
    assert gaps / 80 == pytest.approx(summary["ensemble"][f"ece_{binning}"])


def test_a_single_network_is_its_only_member() -> None:
    summary = summarise(*some_probs(members=1))
    assert summary["members"] == [summary["ensemble"]]
    assert summary["disagreement"] is None
    assert summary["pairwise_kl"] is None


def test_json_keeps_every_figure() -> None:
    probs, labels = some_probs(members=2)
    summary = summarise(torch.from_numpy(probs).float(), torch.from_numpy(labels))
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_labels_and_shape_are_checked() -> None:
    probs, labels = some_probs(members=2)
    with pytest.raises(InputError, match="3 axes"):
        summarise(probs[0], labels)
    with pytest.raises(InputError, match=r"must be \(80,\)"):
        summarise(probs, labels[:-1])
