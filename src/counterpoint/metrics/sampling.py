"""How the plug-in calibration errors scatter over samples from a population whose gaps are known, in closed form.

A bin's gap is its accuracy less its mean confidence, in the population. Arrays have one entry per bin that holds an
image.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from counterpoint.metrics.calibration import Binning, reliability_bins
from counterpoint.metrics.checks import Floats, Integers, confidence_and_correct
from counterpoint.metrics.intervals import Scatter


@dataclass(frozen=True, eq=False)
class BinSums:
    """Sums over the images of each bin, where doubt is 1 − confidence and surplus is correct − confidence."""

    count: Integers
    doubt: Floats
    doubt_squared: Floats
    surplus: Floats
    surplus_squared: Floats

    @cached_property
    def images(self) -> int:
        return int(self.count.sum())

    @property
    def gap(self) -> Floats:
        return self.surplus / self.count


def bin_sums(confidence: ArrayLike, correct: ArrayLike, bins: int, binning: Binning) -> BinSums:
    """The sums over each bin of `reliability_bins`, the same to the last bit in any order of the images."""
    count = reliability_bins(confidence, correct, bins, binning).count
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    order = np.lexsort((correct_N, confidence_N))
    doubt_N, surplus_N = (1 - confidence_N)[order], (correct_N - confidence_N)[order]
    starts = np.cumsum(count) - count
    return BinSums(count, *(np.add.reduceat(v, starts) for v in (doubt_N, doubt_N**2, surplus_N, surplus_N**2)))


def ece_scatter(sums: BinSums, gap: Floats) -> Scatter:
    """The scatter of the plug-in ECE: |errors − Σ doubt| summed over the bins, divided by the number of images."""
    errors = _Errors.of(sums, gap)
    offset = np.abs(errors.mean - sums.doubt)
    distance = np.maximum(errors.mean_distance_from(sums.doubt), offset)
    truth = offset.sum() / sums.images
    noise = np.maximum(errors.variance + offset**2 - distance**2, 0).sum() / sums.images**2
    spread = _variance_between_bins(sums, offset / sums.count)
    return Scatter(float(truth), float(distance.sum() / sums.images), float(noise + spread))


def squared_scatter(sums: BinSums, gap: Floats) -> Scatter:
    """The scatter of the squared plug-in ECE-rms; its `truth` is squared too."""
    errors = _Errors.of(sums, gap)
    variance, chance = errors.variance, errors.chance
    offset = errors.mean - sums.doubt
    skew, tail = variance * (1 - 2 * chance), variance * (1 - 6 * chance * (1 - chance))  # binomial cumulants 3 and 4
    of_square = tail + 2 * variance**2 + 4 * offset * skew + 4 * offset**2 * variance
    truth, bias = ((part / sums.count).sum() / sums.images for part in (offset**2, variance))
    noise = (of_square / sums.count**2).sum() / sums.images**2
    spread = _variance_between_bins(sums, (offset / sums.count) ** 2)
    return Scatter(float(truth), float(truth + bias), float(noise + spread))


@dataclass(frozen=True, eq=False)
class _Errors:
    """The number of errors in each bin, taken as binomial.

    It is not quite binomial, because the images of a bin differ in confidence. Mean and variance are exact; for that,
    the number of trials need not be whole.
    """

    mean: Floats
    trials: Floats
    chance: Floats

    @classmethod
    def of(cls, sums: BinSums, gap: Floats) -> "_Errors":
        """A negative gap scales down each image's chance to be right, a positive gap its chance to be wrong."""
        at_most = np.where(gap < 0, sums.count - sums.doubt, sums.doubt)
        cut = np.minimum(_ratio(np.abs(gap) * sums.count, at_most), 1.0)
        added, kept = np.where(gap < 0, cut, 0.0), 1 - cut  # an image's chance of error: added + kept · doubt
        mean = added * sums.count + kept * sums.doubt
        squares = added**2 * sums.count + 2 * added * kept * sums.doubt + kept**2 * sums.doubt_squared
        chance = np.minimum(_ratio(squares, mean), 1.0)
        return cls(mean, _ratio(mean, chance), chance)

    @property
    def variance(self) -> Floats:
        return self.mean * (1 - self.chance)

    def mean_distance_from(self, centre: Floats) -> Floats:
        """E|errors − centre|, from E[errors; errors ≤ k] = mean · P(at most k − 1 errors in one trial fewer)."""
        whole = np.floor(centre)
        at_most = centre * _binomial_cdf(whole, self.trials, self.chance)
        at_most -= self.mean * _binomial_cdf(whole - 1, self.trials - 1, self.chance)
        return 2 * at_most + self.mean - centre


def _variance_between_bins(sums: BinSums, value: Floats) -> float:
    """What the random number of images in each bin adds to the variance of a mean of `value` over images."""
    mean, mean_square = (float((sums.count * v).sum()) / sums.images for v in (value, value**2))
    return max(mean_square - mean**2, 0.0) / sums.images


def _binomial_cdf(successes: Floats, trials: Floats, chance: Floats) -> Floats:
    inside = (successes >= 0) & (successes < trials)
    failures = np.where(inside, trials - successes, 1.0)
    return np.where(inside, betainc(failures, np.where(inside, successes, 0.0) + 1, 1 - chance), successes >= 0)


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    """0 where the denominator is 0."""
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)
