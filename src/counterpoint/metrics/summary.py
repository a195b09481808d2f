"""All metrics of one set of images as a dict for results.json: fractions, and names that carry their estimator."""

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.metrics.calibration import Binning, ece, ece_rms, reliability_bins
from counterpoint.metrics.checks import Floats, Integers, class_labels, probabilities
from counterpoint.metrics.diversity import disagreement
from counterpoint.metrics.scores import brier, error, nll


def summarise(probs_MNK: ArrayLike, labels_N: ArrayLike) -> dict[str, Any]:
    """The metrics of the ensemble (mean probability over its members), of each member, and between members."""
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    labels = class_labels(labels_N, "labels_N", *members_MNK.shape[1:])
    ensemble_NK = members_MNK.mean(axis=0)
    return {
        "ensemble": _scores(ensemble_NK, labels),
        "members": [_scores(member_NK, labels) for member_NK in members_MNK],
        "disagreement": disagreement(members_MNK) if len(members_MNK) > 1 else None,
        "reliability": {
            "width15": _bin_rows(ensemble_NK, labels, "width"),
            "mass15": _bin_rows(ensemble_NK, labels, "mass"),
        },
    }


def _scores(probs_NK: Floats, labels_N: Integers) -> dict[str, float]:
    confidence, correct = _confidence_and_correct(probs_NK, labels_N)
    return {
        "error": error(probs_NK, labels_N),
        "nll": nll(probs_NK, labels_N),
        "brier": brier(probs_NK, labels_N),
        "ece_width15": ece(confidence, correct, bins=15, binning="width"),
        "ece_rms_width15": ece_rms(confidence, correct, bins=15, binning="width"),
        "ece_mass15": ece(confidence, correct, bins=15, binning="mass"),
        "ece_rms_mass15": ece_rms(confidence, correct, bins=15, binning="mass"),
        "mean_confidence": float(confidence.mean()),
    }


def _bin_rows(probs_NK: Floats, labels_N: Integers, binning: Binning) -> list[dict[str, float | int]]:
    table = reliability_bins(*_confidence_and_correct(probs_NK, labels_N), bins=15, binning=binning)
    columns = {name: values.tolist() for name, values in asdict(table).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _confidence_and_correct(probs_NK: Floats, labels_N: Integers) -> tuple[Floats, NDArray[np.bool_]]:
    return probs_NK.max(axis=1), probs_NK.argmax(axis=1) == labels_N
