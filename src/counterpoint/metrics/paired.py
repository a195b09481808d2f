"""The difference between two runs on the same images, ours − other, with its 95 % interval over images.

All figures are better when lower, so a difference below 0 speaks for ours. An image must count once: where it appears
in several cells, compare its mean over the cells with `mean_difference`.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

from counterpoint.errors import InputError
from counterpoint.metrics.calibration import Binning, reliability_bins
from counterpoint.metrics.checks import Floats, finite, zeros_and_ones
from counterpoint.metrics.debiased import Interval, ece_debiased, ece_rms_debiased
from counterpoint.metrics.scores import ImageScores

_UPPER = 0.975


def paired_differences(ours: ImageScores, other: ImageScores) -> dict[str, Interval]:
    """The differences of error, NLL, Brier score and the debiased calibration errors; row i of both is one image."""
    differences = {
        "error": error_difference(ours.correct, other.correct),
        "nll": mean_difference(ours.nll, other.nll),
        "brier": mean_difference(ours.brier, other.brier),
    }
    binnings: tuple[Binning, ...] = ("width", "mass")
    for binning in binnings:
        differences[f"ece_{binning}15_debiased"] = ece_difference(ours, other, 15, binning)
        differences[f"ece_rms_{binning}15_debiased"] = ece_rms_difference(ours, other, 15, binning)
    return differences


def mean_difference(ours_N: ArrayLike, other_N: ArrayLike) -> Interval:
    """Student's t interval of the mean difference between two numbers per image."""
    ours, other = _same_images(ours_N, other_N)
    difference = ours - other
    value = float(difference.mean())
    margin = float(stdtrit(len(ours) - 1, _UPPER) * difference.std(ddof=1) / np.sqrt(len(ours)))
    return Interval(value, value - margin, value + margin)


def error_difference(correct_N: ArrayLike, other_correct_N: ArrayLike) -> Interval:
    """The difference of two errors, with the interval of Bonett & Price 2012.

    The interval counts two more images: one that only the first run has right, and one that only the second has right.
    Without them it would be too short where the runs differ on few images, and of length 0 where they differ on none.
    """
    ours, other = _same_images(correct_N, other_correct_N)
    zeros_and_ones(ours, "correct_N", len(ours))
    zeros_and_ones(other, "other_correct_N", len(ours))
    only_ours, only_other = float((ours > other).sum()), float((ours < other).sum())
    total = len(ours) + 2
    centre, differ = (only_other - only_ours) / total, (only_other + only_ours + 2) / total
    margin = float(ndtri(_UPPER) * np.sqrt((differ - centre**2) / total))
    return Interval((only_other - only_ours) / len(ours), max(centre - margin, -1.0), min(centre + margin, 1.0))


def ece_difference(ours: ImageScores, other: ImageScores, bins: int = 15, binning: Binning = "width") -> Interval:
    """The difference of the two `ece_debiased`."""
    return _calibration_difference(ours, other, bins, binning, ece_debiased, _ece_influence)


def ece_rms_difference(ours: ImageScores, other: ImageScores, bins: int = 15, binning: Binning = "width") -> Interval:
    """The difference of the two `ece_rms_debiased`."""
    return _calibration_difference(ours, other, bins, binning, ece_rms_debiased, _squared_influence)


def _calibration_difference(
    ours: ImageScores,
    other: ImageScores,
    bins: int,
    binning: Binning,
    estimate: Callable[..., Interval],
    influence: Callable[[Floats, Floats], Floats],
) -> Interval:
    """The intervals of the two runs, joined by the correlation of the images' influences (MOVER: Zou & Donner 2008).

    For symmetric intervals this is the root of the variance of a difference. Where an interval begins at 0, its run may
    be perfectly calibrated, and its estimate can err to one side only. Its distance to 0 is then added in full.
    """
    a, b = (estimate(run.confidence, run.correct, bins, binning) for run in (ours, other))
    correlation = _correlation(*(influence(*_surplus_and_gap(run, bins, binning)) for run in (ours, other)))
    value = a.value - b.value
    below = _joined(a.value - a.low, b.high - b.value, correlation if a.low > 0 else -1.0)
    above = _joined(b.value - b.low, a.high - a.value, correlation if b.low > 0 else -1.0)
    return Interval(value, value - below, value + above)


def _surplus_and_gap(run: ImageScores, bins: int, binning: Binning) -> tuple[Floats, Floats]:
    """Each image's correct − confidence, and the mean of that over its bin."""
    table = reliability_bins(run.confidence, run.correct, bins, binning)
    bin_N = np.searchsorted(table.high, np.minimum(run.confidence, 1.0), side="left")
    return run.correct - run.confidence, (table.accuracy - table.confidence)[bin_N]


def _same_images(ours_N: ArrayLike, other_N: ArrayLike) -> tuple[Floats, Floats]:
    ours, other = finite(ours_N, "ours_N", ndim=1), finite(other_N, "other_N", ndim=1)
    if len(ours) != len(other):
        raise InputError(f"the runs have {len(ours)} and {len(other)} images; they must be evaluated on the same ones")
    if len(ours) < 2:
        raise InputError("the runs have one image; an interval over images needs at least two")
    return ours, other


def _ece_influence(surplus_N: Floats, gap_N: Floats) -> Floats:
    return np.sign(gap_N) * surplus_N


def _squared_influence(surplus_N: Floats, gap_N: Floats) -> Floats:
    return 2 * gap_N * surplus_N - gap_N**2


def _correlation(first_N: Floats, second_N: Floats) -> float:
    first, second = first_N - first_N.mean(), second_N - second_N.mean()
    scale = float(np.sqrt((first @ first) * (second @ second)))
    return float(first @ second) / scale if scale > 0 else 0.0


def _joined(distance: float, other_distance: float, correlation: float) -> float:
    mixed = 2 * correlation * distance * other_distance
    return float(np.sqrt(max(distance**2 + other_distance**2 - mixed, 0.0)))
