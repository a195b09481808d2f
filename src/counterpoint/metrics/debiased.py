"""Calibration errors freed from the bias of noise, each with a 95 % interval over images.

A plug-in calibration error is too large on average, because noise in a bin's accuracy counts as miscalibration. The
truth estimated here is what the same bins would show on infinitely many images.

The interval holds every truth that the observed plug-in value does not reject, with 2.5 % in each tail. A truth is
tried on two populations that have it: the one whose gaps are the likeliest given the observed gaps, and one that is
equally over-confident everywhere. How the plug-in value scatters in each population comes from `sampling`.

Where images belong together, a bin's number of right images is not binomial. Then the scatter comes from the groups'
sums, as it does over cells from the images' sums (see `over_cells`).

Where all gaps have the same sign, the plug-in ECE is |accuracy − mean confidence|. Then the interval also holds every
value of it that an exact test of the number of right images does not reject. This matters for a few images without an
error, which prove little.

The truth of a perfectly calibrated model is 0, the least that is possible. Only the lower end of an interval can miss
it, so it is covered in 97.5 % of samples.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.checks import Floats, confidence_and_correct
from counterpoint.metrics.clustered import Ece, EceRms, ImageSums, image_sums
from counterpoint.metrics.groups import groups_of
from counterpoint.metrics.intervals import TAIL, Interval, Row, Scatter, not_rejected
from counterpoint.metrics.over_cells import estimate
from counterpoint.metrics.sampling import BinSums, bin_sums, ece_scatter, squared_scatter
from counterpoint.metrics.scores import ImageScores


def ece_debiased(
    confidence: ArrayLike,
    correct: ArrayLike,
    bins: int = 15,
    binning: Binning = "width",
    groups: ArrayLike | None = None,
) -> Interval:
    """The ECE with the noise's share removed, and its 95 % interval over images.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image.
    `groups` (N,) says which images belong together, such as those of one patient, by equal whole numbers. Then a group
    is one draw, and the interval is over groups. Fewer than ten are refused.

    The plug-in value is the ordinary ECE. The estimate is the ECE of the most likely population whose plug-in value is
    on average the observed one. It is 0 if every population has a larger plug-in value on average. The estimate is a
    little low if all bins have the same gap, about as large as the noise. It is a little high if one bin has the whole
    gap. The interval allows for both.

    >>> from counterpoint.metrics import ece, ece_debiased
    >>> confidence, correct = [0.75] * 40, [True] * 29 + [False] * 11  # 72.5 % are right: within the noise of 40 images
    >>> round(ece(confidence, correct), 3), round(ece_debiased(confidence, correct).value, 3)
    (0.025, 0.0)
    """
    if (of_groups := _of_groups(confidence, correct, bins, binning, groups)) is not None:
        return estimate(Ece(of_groups)).interval
    sums = bin_sums(confidence, correct, bins, binning)
    observed = float(np.abs(sums.surplus).sum() / sums.images)
    row = _likeliest(sums, ece_scatter)
    value = row.truth_where(lambda scatter: scatter.mean, observed)
    return _interval((row, _evenly_over_confident(sums, ece_scatter)), value, observed, _largest_mean_gap(sums))


def ece_rms_debiased(
    confidence: ArrayLike,
    correct: ArrayLike,
    bins: int = 15,
    binning: Binning = "width",
    groups: ArrayLike | None = None,
) -> Interval:
    """The ECE-rms with the noise's share removed, and its 95 % interval over images.

    The arguments are those of `ece_debiased`.

    It is the root of an unbiased estimate of the squared ECE-rms, and 0 if that estimate is negative. A squared gap
    minus its variance (Kumar, Liang & Ma 2019) is the mean product of correct − confidence over pairs of different
    images of the bin. They take the variance of correct. We take that of correct − confidence, because confidences
    differ within a bin. A bin of one image has no pair and counts as 0.

    >>> from counterpoint.metrics import ece_rms_debiased
    >>> confidence, correct = [0.9] * 100, [True] * 60 + [False] * 40
    >>> estimate = ece_rms_debiased(confidence, correct)
    >>> estimate.low < 0.3 < estimate.high
    True
    """
    if (of_groups := _of_groups(confidence, correct, bins, binning, groups)) is not None:
        return estimate(EceRms(of_groups)).interval
    sums = bin_sums(confidence, correct, bins, binning)
    pair_products = (sums.surplus**2 - sums.surplus_squared) / np.maximum(sums.count - 1, 1)
    value = max(float(pair_products[sums.count > 1].sum() / sums.images), 0.0)
    observed = float((sums.surplus**2 / sums.count).sum() / sums.images)
    rows = (_likeliest(sums, squared_scatter), _evenly_over_confident(sums, squared_scatter))
    squared = _interval(rows, value, observed, _largest_mean_gap(sums) ** 2)
    return Interval(*(float(np.sqrt(square)) for square in (squared.value, squared.low, squared.high)))


def _of_groups(
    confidence: ArrayLike, correct: ArrayLike, bins: int, binning: Binning, groups: ArrayLike | None
) -> ImageSums | None:
    """None where each image is a draw of its own."""
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    found = groups_of(groups, len(confidence_N))
    if found is None:
        return None
    nothing = np.zeros(len(confidence_N))
    scores = ImageScores(confidence_N, correct_N > 0, nothing, nothing, found.group_N)
    return image_sums({"": [scores]}, bins, binning)


def _likeliest(sums: BinSums, scatter: Callable[[BinSums, Floats], Scatter]) -> Row:
    """The likeliest population for each ECE: the one of least Σ count · (gap − observed gap)² / variance.

    At x = 0 the gaps are the observed ones. By Lagrange's rule each |gap| moves in proportion to its bin's variance,
    but not past 0. The variance is that of the accuracy with one right and one wrong image added, so it is never 0.
    """
    accuracy = (sums.count - sums.doubt + sums.surplus + 1) / (sums.count + 2)
    variance = accuracy * (1 - accuracy)
    size, sign = np.abs(sums.gap), np.where(sums.gap > 0, 1.0, -1.0)
    reach = float(1 / variance.min())
    return Row(lambda x: scatter(sums, sign * np.maximum(size + x * variance, 0.0)), -reach, reach)


def _evenly_over_confident(sums: BinSums, scatter: Callable[[BinSums, Floats], Scatter]) -> Row:
    """Populations in which an image of confidence c is right with probability c · (1 − x)."""
    confidence = 1 - sums.doubt / sums.count
    return Row(lambda x: scatter(sums, -x * confidence), 0.0, 1.0)


def _largest_mean_gap(sums: BinSums) -> float:
    """The largest |accuracy − mean confidence| that the number of right images does not reject.

    It is 0 where the gaps differ in sign.
    """
    if sums.surplus.min() < 0 < sums.surplus.max():
        return 0.0
    confidence = 1 - sums.doubt.sum() / sums.images
    right = round(float(sums.surplus.sum() - sums.doubt.sum() + sums.images))
    wrong = sums.images - right
    accuracy_low = betaincinv(right, wrong + 1, TAIL) if right else 0.0  # Clopper & Pearson 1934
    accuracy_high = betaincinv(right + 1, wrong, 1 - TAIL) if wrong else 1.0
    return float(max(confidence - accuracy_low, accuracy_high - confidence))


def _interval(rows: tuple[Row, ...], value: float, observed: float, at_least_to: float) -> Interval:
    low, high = not_rejected(rows, observed)
    return Interval(value, min(value, low), max(value, at_least_to, high))
