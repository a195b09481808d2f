import json

import numpy as np
import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.metrics import brier, disagreement, ece, ece_rms, error, nll, summarise


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
    }


def test_each_figure_is_the_metric_of_its_name() -> None:
    probs, labels = some_probs(members=3)
    summary = summarise(probs, labels)
    assert list(summary) == ["ensemble", "members", "disagreement", "reliability"]
    assert summary["ensemble"] == scores_by_name((probs[0] + probs[1] + probs[2]) / 3, labels)
    assert summary["members"] == [scores_by_name(member, labels) for member in probs]
    assert summary["disagreement"] == disagreement(probs)


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
