"""A set's figures as records, each against the metric of its name."""

import json
from dataclasses import asdict, replace

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
    score_set,
    summarise,
)
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.summary import class_figures, floors, honest, risk_coverage_points
from counterpoint.records.codec import decode, encode
from counterpoint.records.figures import ClassFigures, Honest, Summary


def some_probs(members: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(5, 0.4), size=(members, 80)), rng.integers(5, size=80)


def same(found: ImageScores, expected: ImageScores) -> bool:
    return all(
        np.allclose(getattr(found, name), getattr(expected, name), rtol=1e-6)
        for name in ("confidence", "correct", "nll", "brier")
    )


def test_the_ensemble_is_the_mean_of_the_members() -> None:
    probs_MNK, labels_N = some_probs(members=3)
    scores = score_set(probs_MNK, labels_N)
    assert same(scores.ensemble, image_scores(sum(probs_MNK) / 3, labels_N))
    assert len(scores.members) == 3
    for found, probs_NK in zip(scores.members, probs_MNK, strict=True):
        assert same(found, image_scores(probs_NK, labels_N))
    assert scores.disagreement == disagreement(probs_MNK)
    assert scores.pairwise_kl == mean_pairwise_kl(probs_MNK)


def test_one_network_has_nobody_to_differ_from() -> None:
    scores = score_set(*some_probs(members=1))
    assert same(scores.ensemble, scores.members[0])
    assert scores.disagreement is None
    assert scores.pairwise_kl is None


def test_tensors_are_taken_too() -> None:
    probs_MNK, labels_N = some_probs(members=2)
    scores = score_set(torch.from_numpy(probs_MNK).float(), torch.from_numpy(labels_N))
    assert scores.ensemble.confidence.dtype == np.float64
    assert same(scores.ensemble, score_set(probs_MNK, labels_N).ensemble)


def test_labels_and_shape_are_checked() -> None:
    probs_MNK, labels_N = some_probs(members=2)
    with pytest.raises(InputError, match="3 axes"):
        score_set(probs_MNK[0], labels_N)
    with pytest.raises(InputError, match=r"must be \(80,\)"):
        score_set(probs_MNK, labels_N[:-1])


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
    summary = summarise(score_set(probs, labels))
    assert asdict(summary.ensemble) == pytest.approx(scores_by_name((probs[0] + probs[1] + probs[2]) / 3, labels))
    assert [asdict(member) for member in summary.members] == [
        pytest.approx(scores_by_name(member, labels)) for member in probs
    ]
    assert summary.disagreement == disagreement(probs)
    assert summary.pairwise_kl == mean_pairwise_kl(probs)
    assert summary.risk_coverage is None, "only a whole clean set gets a curve"


def test_each_predictor_is_judged_honestly() -> None:
    probs, labels = some_probs(members=2)
    scores = score_set(probs, labels)
    summary = summarise(scores)
    ensemble = honest(image_scores(probs.mean(axis=0), labels))
    assert summary.honest == Honest(ensemble, tuple(honest(image_scores(member, labels)) for member in probs))
    assert summarise(scores, honest_members=False) == replace(summary, honest=Honest(ensemble))


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_honest_rows_are_floor_excess_and_debiased_estimate(binning: Binning) -> None:
    probs, labels = some_probs(members=1)
    scores = image_scores(probs[0], labels)
    confidence, correct = scores.confidence, scores.correct
    floor = noise_floor(confidence, correct, 15, binning)
    rows = encode(honest(scores))
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
        assert floors(scores, len(scores))[f"{key}_floor"] == pytest.approx(mean)


def test_a_short_curve_has_a_point_per_image() -> None:
    confidence = np.array([0.5, 0.9, 0.8, 0.6])
    correct = np.array([False, True, True, False])
    curve = risk_coverage_points(ImageScores(confidence, correct, confidence, confidence))
    assert curve.coverage == (0.25, 0.5, 0.75, 1.0)
    assert curve.risk == pytest.approx((0.0, 0.0, 1 / 3, 0.5))


def test_a_long_curve_has_a_point_per_hundredth() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = rng.random(250), rng.random(250) < 0.7
    curve = risk_coverage_points(ImageScores(confidence, correct, confidence, confidence))
    wrong_sure_first = ~correct[np.argsort(-confidence)]
    assert len(curve.coverage) == 100
    assert curve.coverage[:3] == (3 / 250, 5 / 250, 8 / 250), "hundredths, rounded up to whole images"
    assert curve.risk[:3] == pytest.approx([wrong_sure_first[:kept].mean() for kept in (3, 5, 8)])
    assert curve.risk[-1] == pytest.approx(wrong_sure_first.mean())


@pytest.mark.parametrize("binning", ["width15", "mass15"])
def test_the_bins_add_up_to_the_ece(binning: str) -> None:
    summary = summarise(score_set(*some_probs(members=3)))
    bins = getattr(summary.reliability, binning)
    assert sum(one.count for one in bins) == 80
    gaps = sum(one.count * abs(one.accuracy - one.confidence) for one in bins)
    assert gaps / 80 == pytest.approx(getattr(summary.ensemble, f"ece_{binning}"))
    assert all(one.low <= one.confidence <= one.high for one in bins)


def test_a_single_network_is_its_only_member() -> None:
    summary = summarise(score_set(*some_probs(members=1)))
    assert summary.members == (summary.ensemble,)
    assert summary.disagreement is None
    assert summary.pairwise_kl is None


def test_json_keeps_every_figure() -> None:
    summary = summarise(score_set(*some_probs(members=2)))
    assert decode(Summary, json.loads(json.dumps(encode(summary), allow_nan=False))) == summary


def test_classes_by_hand() -> None:
    probs = [[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.25, 0.625, 0.125], [0.125, 0.75, 0.125]]
    found = class_figures(np.array(probs), np.array([0, 0, 0, 1]), ("cat", "dog", "owl"))
    assert list(found) == [
        ClassFigures(
            name="cat",
            images=3,
            wrong=2,
            taken_for="dog",
            taken=2,
            predicted=1,
            predicted_right=1,
            predicted_confidence=0.7,
        ),
        ClassFigures(
            name="dog",
            images=1,
            wrong=0,
            predicted=3,
            predicted_right=1,
            predicted_confidence=0.625,
        ),
        ClassFigures(name="owl", images=0, wrong=0, predicted=0, predicted_right=0),
    ]


def test_classes_are_the_plain_loop() -> None:
    (probs_NK,), labels = some_probs(1)
    names = [str(k) for k in range(5)]
    pairs = list(zip(labels.tolist(), probs_NK.argmax(axis=1).tolist(), strict=True))
    for k, one in enumerate(class_figures(probs_NK, labels, names)):
        mistakes = [predicted for label, predicted in pairs if label == k != predicted]
        assert (one.images, one.wrong) == (sum(label == k for label, _ in pairs), len(mistakes))
        assert one.taken_for is not None
        assert one.taken == mistakes.count(int(one.taken_for)) == max(mistakes.count(other) for other in range(5))
        assert one.predicted == sum(predicted == k for _, predicted in pairs)
        assert one.predicted_right == pairs.count((k, k))
