"""Binned calibration error of confidences. Bins change the estimate, so the binning is part of every figure's name."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import InputError, unknown
from counterpoint.metrics.checks import Floats, Integers, confidence_and_correct

Binning = Literal["width", "mass"]


_MOST_BINS = 1_000_000


@dataclass(frozen=True, eq=False)
class ReliabilityBins:
    """The bins that hold at least one image, by rising confidence. Each field is an array with one entry per bin.

    A bin is (low, high]. The first one also holds confidence 0.

    >>> from counterpoint.metrics import reliability_bins
    >>> table = reliability_bins([0.3, 0.9, 0.9, 0.9], [False, True, True, False], bins=2)
    >>> table.count.tolist(), table.confidence.tolist()
    ([1, 3], [0.3, 0.9])
    """

    low: Floats
    high: Floats
    count: Integers
    confidence: Floats  # mean over the bin
    accuracy: Floats

    @property
    def ece(self) -> float:
        return float(np.average(np.abs(self.accuracy - self.confidence), weights=self.count))

    @property
    def ece_rms(self) -> float:
        return float(np.sqrt(np.average((self.accuracy - self.confidence) ** 2, weights=self.count)))


def reliability_bins(
    confidence: ArrayLike, correct: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> ReliabilityBins:
    """Count, mean confidence and accuracy of each bin, which a reliability diagram shows.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. With
    "width", edge k is k / bins. With "mass", edge k is the smallest confidence that at least k / bins of the images do
    not exceed. So without ties the counts differ by at most one. Images of equal confidence share a bin.

    >>> from counterpoint.metrics import reliability_bins
    >>> table = reliability_bins([0.6, 0.7, 0.8, 0.9], [True, False, True, True], bins=2, binning="mass")
    >>> table.accuracy.tolist()
    [0.5, 1.0]
    """
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    # A sum over sorted values is the same to the last bit in any order of the images.
    sorted_N, right_N = np.sort(confidence_N), np.sort(confidence_N[correct_N > 0])
    inner = _inner_edges(sorted_N, bins, binning)
    edges = np.concatenate(([0.0], inner, [1.0]))
    count, right = (
        np.diff(np.searchsorted(values, inner, side="right"), prepend=0, append=len(values))
        for values in (sorted_N, right_N)
    )
    filled = count > 0
    return ReliabilityBins(
        low=edges[:-1][filled],
        high=edges[1:][filled],
        count=count[filled],
        confidence=np.bincount(np.repeat(np.arange(bins), count), sorted_N, minlength=bins)[filled] / count[filled],
        accuracy=right[filled] / count[filled],
    )


def ece(confidence: ArrayLike, correct: ArrayLike, bins: int = 15, binning: Binning = "width") -> float:
    """Expected calibration error: the mean gap between confidence and accuracy, over bins.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. A
    bin counts by its number of images. The result is a fraction: 0 is perfectly calibrated, and 0.05 means "off by 5
    points on average". `binning` is "width" (equal-width bins) or "mass" (equal-mass bins). State `bins` and `binning`
    with the result, because other bins give another value.

    >>> from counterpoint.metrics import ece
    >>> round(ece([0.8, 0.8, 0.8, 0.8], [True, True, True, False]), 3)  # 80 % confidence, 75 % right
    0.05
    """
    return reliability_bins(confidence, correct, bins, binning).ece


def ece_rms(confidence: ArrayLike, correct: ArrayLike, bins: int = 15, binning: Binning = "width") -> float:
    """Like `ece`, but the root of the mean squared gap instead of the mean absolute gap.

    >>> from counterpoint.metrics import ece_rms
    >>> round(ece_rms([0.6, 0.6, 0.9, 0.9], [True, False, True, True]), 3)
    0.1
    """
    return reliability_bins(confidence, correct, bins, binning).ece_rms


def overconfidence(confidence: ArrayLike, correct: ArrayLike) -> float:
    """Mean confidence minus accuracy: above 0 for an over-confident model, below 0 for an under-confident one.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image.

    >>> from counterpoint.metrics import overconfidence
    >>> round(overconfidence([0.9, 0.9], [True, False]), 3)
    0.4
    """
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    return float(confidence_N.mean() - correct_N.mean())


def _inner_edges(sorted_N: Floats, bins: int, binning: Binning) -> Floats:
    if isinstance(bins, bool) or not isinstance(bins, int | np.integer) or not 1 <= bins <= _MOST_BINS:
        raise InputError(f"bins is {bins!r}; it must be a whole number, 1 or more, and {_MOST_BINS:,} at most")
    k = np.arange(1, bins)
    if binning == "width":
        return k / bins
    if binning == "mass":
        rank = -(-k * len(sorted_N) // bins)  # ceil(k · N / bins), in integers so that no rounding moves an edge
        return sorted_N[rank - 1]
    raise unknown("binning", binning, ("width", "mass"))
