"""All metrics of one set of images as a dict for results.json: fractions, and names that carry their estimator."""

from dataclasses import asdict
from typing import Any

from numpy.typing import ArrayLike

from counterpoint.metrics.calibration import Binning, ece, ece_rms, reliability_bins
from counterpoint.metrics.checks import class_labels, probabilities
from counterpoint.metrics.diversity import disagreement
from counterpoint.metrics.scores import ImageScores, image_scores


def summarise(probs_MNK: ArrayLike, labels_N: ArrayLike) -> dict[str, Any]:
    """The metrics of the ensemble (mean probability over its members), of each member, and between members."""
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    labels = class_labels(labels_N, "labels_N", *members_MNK.shape[1:])
    ensemble = image_scores(members_MNK.mean(axis=0), labels)
    return {
        "ensemble": figures(ensemble),
        "members": [figures(image_scores(member_NK, labels)) for member_NK in members_MNK],
        "disagreement": disagreement(members_MNK) if len(members_MNK) > 1 else None,
        "reliability": {"width15": _bin_rows(ensemble, "width"), "mass15": _bin_rows(ensemble, "mass")},
    }


def figures(scores: ImageScores) -> dict[str, float]:
    """Every metric of one predictor on one set of images."""
    confidence, correct = scores.confidence, scores.correct
    return {
        "error": float((~correct).mean()),
        "nll": float(scores.nll.mean()),
        "brier": float(scores.brier.mean()),
        "ece_width15": ece(confidence, correct, bins=15, binning="width"),
        "ece_rms_width15": ece_rms(confidence, correct, bins=15, binning="width"),
        "ece_mass15": ece(confidence, correct, bins=15, binning="mass"),
        "ece_rms_mass15": ece_rms(confidence, correct, bins=15, binning="mass"),
        "mean_confidence": float(confidence.mean()),
    }


def _bin_rows(scores: ImageScores, binning: Binning) -> list[dict[str, float | int]]:
    table = reliability_bins(scores.confidence, scores.correct, bins=15, binning=binning)
    columns = {name: values.tolist() for name, values in asdict(table).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
