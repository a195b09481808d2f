"""All metrics of one set of images as a dict for results.json: fractions, and names that carry their estimator."""

from dataclasses import asdict
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.metrics.calibration import Binning, ece, ece_rms, overconfidence, reliability_bins
from counterpoint.metrics.checks import class_labels, probabilities
from counterpoint.metrics.debiased import Interval, ece_debiased, ece_rms_debiased
from counterpoint.metrics.diversity import disagreement, mean_pairwise_kl
from counterpoint.metrics.floor import noise_floor
from counterpoint.metrics.scores import ImageScores, image_scores
from counterpoint.metrics.selective import aurc, risk_coverage

_BINNINGS: tuple[Binning, ...] = get_args(Binning)
_CURVE_POINTS = 100


def summarise(probs_MNK: ArrayLike, labels_N: ArrayLike, *, honest_members: bool = True) -> dict[str, Any]:
    """The metrics of the ensemble (mean probability over its members), of each member, and between members.

    With `honest_members=False` the members' floors and intervals, which are most of the work, are left out.
    """
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    labels = class_labels(labels_N, "labels_N", *members_MNK.shape[1:])
    ensemble = image_scores(members_MNK.mean(axis=0), labels)
    members = [image_scores(member_NK, labels) for member_NK in members_MNK]
    several = len(members) > 1
    return {
        "ensemble": figures(ensemble),
        "members": [figures(member) for member in members],
        "disagreement": disagreement(members_MNK) if several else None,
        "pairwise_kl": mean_pairwise_kl(members_MNK) if several else None,
        "honest": {
            "ensemble": honest(ensemble),
            "members": [honest(member) for member in members] if honest_members else [],
        },
        "reliability": {f"{binning}15": _bin_rows(ensemble, binning) for binning in _BINNINGS},
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
        "overconfidence": overconfidence(confidence, correct),
        "aurc": aurc(confidence, correct),
    }


def honest(scores: ImageScores) -> dict[str, dict[str, float]]:
    """For each calibration error: what noise alone would show, the excess over it, and the debiased estimate."""
    rows = {}
    for binning in _BINNINGS:
        seen = (scores.confidence, scores.correct, 15, binning)
        floor = noise_floor(*seen)
        rows[f"ece_{binning}15"] = _honest_row(floor.ece_mean, floor.ece_excess, ece_debiased(*seen))
        rows[f"ece_rms_{binning}15"] = _honest_row(floor.ece_rms_mean, floor.ece_rms_excess, ece_rms_debiased(*seen))
    return rows


def floors(scores: ImageScores) -> dict[str, float]:
    """The noise floor of each calibration error, named after it."""
    rows = {}
    for binning in _BINNINGS:
        floor = noise_floor(scores.confidence, scores.correct, 15, binning)
        rows[f"ece_{binning}15_floor"] = floor.ece_mean
        rows[f"ece_rms_{binning}15_floor"] = floor.ece_rms_mean
    return rows


def risk_coverage_points(scores: ImageScores) -> dict[str, list[float]]:
    """The risk–coverage curve at each hundredth of the images, rounded up to whole images."""
    curve = risk_coverage(scores.confidence, scores.correct)
    hundredths = np.arange(1, _CURVE_POINTS + 1)
    kept = np.unique(-(-hundredths * len(scores) // _CURVE_POINTS))
    return {"coverage": curve.coverage[kept - 1].tolist(), "risk": curve.risk[kept - 1].tolist()}


def _honest_row(floor: float, excess: float, debiased: Interval) -> dict[str, float]:
    return {"floor": floor, "excess": excess, "debiased": debiased.value, "low": debiased.low, "high": debiased.high}


def _bin_rows(scores: ImageScores, binning: Binning) -> list[dict[str, float | int]]:
    table = reliability_bins(scores.confidence, scores.correct, bins=15, binning=binning)
    columns = {name: values.tolist() for name, values in asdict(table).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
