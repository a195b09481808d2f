"""The difference between two runs' calibration errors on the same images, ours − other, debiased, with a 95 % interval.

An image counts once, with all its cells: the interval is over samples of images, or of groups of images that belong
together. The truth estimated here is what the same bins would show on infinitely many images.

The intervals of the two runs come from `over_cells`. They are joined by the correlation of the plug-in values (MOVER:
Zou & Donner 2008). With symmetric intervals that is the root of the variance of a difference. A run that may be
perfectly calibrated lies on the edge: its estimate can err to one side only, and towards 0 its distance is added in
full.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.clustered import Ece, EceRms, ImageSums, calibration_errors
from counterpoint.metrics.intervals import TAIL, Interval
from counterpoint.metrics.over_cells import RunEstimate, estimate
from counterpoint.metrics.scores import Grid, require_same_groups


def calibration_differences(ours: Grid, other: Grid, bins: int = 15) -> dict[str, Interval]:
    """Differences of ECE and ECE-rms between two models, with both binnings, over corruptions.

    `ours` and `other` map each corruption's name to its scores, one per severity. Row i of every cell must be the same
    image. The severities of each corruption are pooled, and the mean is taken over the corruptions. A clean set is one
    corruption at one severity. Each difference is `ours` minus `other`, with its 95 % interval over images.

    >>> import numpy as np
    >>> from counterpoint.metrics import calibration_differences, image_scores
    >>> labels = np.arange(40) % 2
    >>> ours = image_scores(np.eye(2)[labels] * 0.9 + 0.05, labels)
    >>> other = image_scores(np.eye(2)[labels] * 0.5 + 0.25, labels)
    >>> found = calibration_differences({"clean": [ours]}, {"clean": [other]})
    >>> sorted(found)
    ['ece_mass15_debiased', 'ece_rms_mass15_debiased', 'ece_rms_width15_debiased', 'ece_width15_debiased']
    >>> found["ece_width15_debiased"].value < 0
    True
    """
    one, two = calibration_errors(ours, bins), calibration_errors(other, bins)
    return {name: _difference(one[name], two[name]) for name in one}


@dataclass(frozen=True, eq=False)
class CalibrationPart:
    """What one run alone says of a calibration error. Two runs' parts give the interval of the difference.

    Only the correlation of the two plug-in values needs both runs. Here it is the mean product of their influences,
    which is the first term of the full correlation. The other terms come from bins that may be calibrated. For the
    ECE-rms they are squares; for the ECE the largest one is. So the correlation found here is the smaller one, and the
    interval the longer one.
    """

    value: float
    low: float
    high: float
    influence_N: Floats  # of each image, or group, on the plug-in value, in its standard deviations, times √N


def calibration_parts(grid: Grid, bins: int = 15) -> dict[str, CalibrationPart]:
    """One run's part in each difference of `calibration_differences`."""
    return {name: _part(one) for name, one in calibration_errors(grid, bins).items()}


def differences_of_parts(
    ours: Mapping[str, CalibrationPart], other: Mapping[str, CalibrationPart]
) -> dict[str, Interval]:
    """The differences of `calibration_differences`, from each run's parts alone. The values are the same; an interval
    is as long, or somewhat longer."""
    differences = {}
    for name, one in ours.items():
        two = other[name]
        if len(one.influence_N) != len(two.influence_N):
            raise InputError(
                f"the runs have {len(one.influence_N)} and {len(two.influence_N)} images; they must be evaluated on "
                "the same ones"
            )
        correlation = float(np.mean(one.influence_N * two.influence_N))
        differences[name] = _interval(one, two, correlation, len(one.influence_N))
    return differences


def _part(statistic: Ece | EceRms) -> CalibrationPart:
    found, draws = estimate(statistic), len(statistic.sums.noise_ND)
    if draws < 2:
        raise InputError("the run has one image; an interval over images needs at least two")
    variance = statistic.scatter(found.surplus_B).variance
    influence_N = statistic.influence(found.surplus_B) * np.sqrt(draws / variance) if variance > 0 else np.zeros(draws)
    return CalibrationPart(found.value, found.low, found.high, influence_N)


def _require_the_same_images(one: ImageSums, two: ImageSums) -> None:
    if one.images != two.images:
        raise InputError(f"the runs have {one.images} and {two.images} images; they must be evaluated on the same ones")
    if one.corruptions != two.corruptions:
        raise InputError(
            f"the runs have {one.corruptions} and {two.corruptions} corruptions; "
            "they must be evaluated on the same ones"
        )
    require_same_groups(one.groups, two.groups)
    if one.images < 2:
        raise InputError("the runs have one image; an interval over images needs at least two")


def _difference(ours: Ece | EceRms, other: Ece | EceRms) -> Interval:
    """Both are the same error, of two runs."""
    _require_the_same_images(ours.sums, other.sums)
    a, b = estimate(ours), estimate(other)
    scale = np.sqrt(ours.scatter(a.surplus_B).variance * other.scatter(b.surplus_B).variance)
    covariance = ours.covariance(other, a.surplus_B, b.surplus_B)  # type: ignore[arg-type]
    correlation = float(covariance / scale) if scale > 0 else 0.0
    return _interval(a, b, correlation, min(a.draws, b.draws))


def _interval(
    a: RunEstimate | CalibrationPart, b: RunEstimate | CalibrationPart, correlation: float, draws: float
) -> Interval:
    value = a.value - b.value
    # As in `error_difference`, two more images count, one for each run: few images without a difference prove little.
    least = float(ndtri(1 - TAIL) * np.sqrt(2) / draws)
    below = _joined(a.value - a.low, b.high - b.value, correlation if a.low > 0 else -1.0, least)
    above = _joined(b.value - b.low, a.high - a.value, correlation if b.low > 0 else -1.0, least)
    return Interval(value, max(value - below, -1.0), min(value + above, 1.0))


def _joined(one: float, other: float, correlation: float, least: float) -> float:
    return float(np.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0) + least**2))
