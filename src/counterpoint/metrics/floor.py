"""The noise floor: the calibration error that a perfectly calibrated model with the same confidences would show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import InputError
from counterpoint.metrics.calibration import Binning, ReliabilityBins, reliability_bins
from counterpoint.metrics.checks import Floats, Integers, confidence_and_correct, whole_numbers
from counterpoint.metrics.groups import PRIOR_GROUPS, Groups, enough_groups
from counterpoint.metrics.scores import ImageScores

_DRAWS_AT_ONCE = 2**15
"""So many stay in the processor's cache. How many there are changes no draw."""

_ROUNDING = 1e-20  # of a squared gap


@dataclass(frozen=True)
class NoiseFloor:
    """The ECE that a perfectly calibrated model would show: mean and standard deviation over the simulations.

    The excess is the observed value minus that mean.

    >>> from counterpoint.metrics import noise_floor
    >>> noise_floor([0.9] * 50, [True] * 45 + [False] * 5).ece_excess < 0  # better than noise alone would be
    True
    """

    ece_mean: float
    ece_sd: float
    ece_excess: float
    ece_rms_mean: float
    ece_rms_sd: float
    ece_rms_excess: float


def noise_floor(
    confidence: ArrayLike,
    correct: ArrayLike,
    bins: int = 15,
    binning: Binning = "width",
    simulations: int = 200,
    seed: int = 0,
    images: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> NoiseFloor:
    """The ECE that a perfectly calibrated model would show on as many images.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. In
    each of the `simulations`, every image is made right with a chance equal to its confidence. The bins stay the
    observed ones.

    If an image has several entries, such as one for each severity of a corruption, these are not independent, and the
    floor is higher. Then `images` (N,) holds each entry's image as a whole number. The simulated gaps of a bin are
    widened by as much as an image's entries there are right or wrong together. If images belong together, such as those
    of one patient, `groups` (N,) holds each entry's group, and serves in place of `images`. Fewer than ten groups are
    refused.

    >>> from counterpoint.metrics import noise_floor
    >>> few = noise_floor([0.9] * 10, [True] * 9 + [False])
    >>> many = noise_floor([0.9] * 1000, [True] * 900 + [False] * 100)
    >>> few.ece_mean > many.ece_mean > 0
    True
    """
    if not isinstance(simulations, int | np.integer) or simulations < 2:
        raise InputError(f"simulations is {simulations!r}; it must be a whole number, 2 or more")
    table = reliability_bins(confidence, correct, bins, binning)
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    right = _simulated_right(np.sort(confidence_N), table.count, simulations, np.random.default_rng(seed))
    gap = right / table.count - table.confidence
    if (together := enough_groups(groups, len(confidence_N))) is not None:
        gap *= _widening_of_groups(table, *_noise(table, confidence_N, correct_N), together)
    elif images is not None:
        gap *= _widening(table, *_noise(table, confidence_N, correct_N), images)
    weight = table.count / len(confidence_N)
    eces, rmses = np.abs(gap) @ weight, np.sqrt(gap**2 @ weight)
    return NoiseFloor(
        ece_mean=float(eces.mean()),
        ece_sd=float(eces.std(ddof=1)),
        ece_excess=float(table.ece - eces.mean()),
        ece_rms_mean=float(rmses.mean()),
        ece_rms_sd=float(rmses.std(ddof=1)),
        ece_rms_excess=float(table.ece_rms - rmses.mean()),
    )


def _simulated_right(sorted_N: Floats, count: Integers, simulations: int, rng: np.random.Generator) -> Integers:
    """The number of right images in each bin, one row per simulation.

    Draws in float32 take half the time of float64. They lie on a grid of 2^-24, so a chance is off by at most 6e-8.
    """
    starts = np.cumsum(count) - count
    at_once = max(_DRAWS_AT_ONCE // len(sorted_N), 1)
    rows = []
    for done in range(0, simulations, at_once):
        shape = (min(at_once, simulations - done), len(sorted_N))
        right_SN = rng.random(shape, dtype=np.float32) < sorted_N
        rows.append(np.add.reduceat(right_SN, starts, axis=1, dtype=np.int64))
    return np.concatenate(rows)


def _noise(
    table: ReliabilityBins, confidence_N: Floats, correct_N: Floats | NDArray[np.bool_]
) -> tuple[Integers, Floats]:
    """Of each entry: its bin, and correct − confidence less the bin's own gap, which is no noise."""
    bin_N = np.searchsorted(table.high, confidence_N, side="left")
    return bin_N, correct_N - confidence_N - (table.accuracy - table.confidence)[bin_N]


def _widening(table: ReliabilityBins, bin_N: Integers, noise_N: Floats, images: ArrayLike) -> Floats:
    """How many times wider each bin's gap scatters than it would if all entries were independent.

    It is the root of the design effect: the variance of the sum of correct − confidence by images, over that by
    entries. A bin without scatter shows nothing, and counts as independent.
    """
    bins = len(table.count)
    _, image_N = np.unique(whole_numbers(images, "images", len(noise_N), of="image"), return_inverse=True)
    place_N, places = image_N * bins + bin_N, (image_N.max() + 1) * bins
    of_image_IB = np.bincount(place_N, noise_N, minlength=places).reshape(-1, bins)
    by_images, by_entries = (of_image_IB**2).sum(axis=0), np.bincount(bin_N, noise_N**2)
    scatters = by_entries > _ROUNDING * table.count
    return np.sqrt(np.divide(by_images, by_entries, out=np.ones(bins), where=scatters))


def draws_of_bins(table: ReliabilityBins, scores: ImageScores) -> Floats:
    """How many independent images would tell as much about each bin's accuracy as its images in groups do."""
    assert scores.groups is not None
    bin_N, noise_N = _noise(table, np.minimum(scores.confidence, 1.0), scores.correct)
    return table.count / _widening_of_groups(table, bin_N, noise_N, scores.groups) ** 2


def _widening_of_groups(table: ReliabilityBins, bin_N: Integers, noise_N: Floats, groups: Groups) -> Floats:
    """As `_widening` by groups, which are fewer and larger than images.

    A bin may have hardly more than one group, whose sum is then the bin's own gap, and shows nothing. So each group's
    square is divided by the share of the bin that it leaves to others. And the bin's effect is drawn to what all bins
    show on average, in shares of the largest effect, Σ n² / Σ n over the groups' entries in the bin: as if
    `PRIOR_GROUPS` more had shown that.
    """
    bins, count = len(table.count), table.count
    place_N, places = groups.group_N * bins + bin_N, len(groups) * bins
    size_GB = np.bincount(place_N, minlength=places).reshape(-1, bins)
    of_group_GB = np.bincount(place_N, noise_N, minlength=places).reshape(-1, bins)
    others_GB = np.where(size_GB < count, 1 - size_GB / count, 1.0)
    by_groups, by_entries = (of_group_GB**2 / others_GB).sum(axis=0), np.bincount(bin_N, noise_N**2)
    scatters = by_entries > _ROUNDING * count
    independent = by_entries * count / np.maximum(count - 1, 1)
    largest = (size_GB**2).sum(axis=0) / count
    effect = np.clip(np.divide(by_groups, independent, out=np.ones(bins), where=scatters), 1.0, largest)
    telling = np.where(scatters, count / largest - 1, 0.0)  # how many groups there are beside the first
    most = float((telling * (largest - 1)).sum())
    share = float((telling * (effect - 1)).sum()) / most if most else 1.0
    return np.sqrt((telling * effect + PRIOR_GROUPS * (1 + share * (largest - 1))) / (telling + PRIOR_GROUPS))
