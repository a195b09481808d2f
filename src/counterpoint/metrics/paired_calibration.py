"""The difference between two runs' calibration errors on the same images, ours − other, debiased, with a 95 % interval.

An image counts once, with all its cells: the interval is over samples of images. The truth estimated here is what the
same bins would show on infinitely many images.

Each run's own interval holds every truth that its plug-in value does not reject, on two rows of populations, as in
`debiased`; but the second, equally far off everywhere with the observed signs, counts only where gaps as uneven as the
observed ones can come from it. How the value scatters comes from `clustered`. The two are joined by the correlation of
the plug-in values (MOVER: Zou & Donner 2008). With symmetric intervals that is the root of the variance of a
difference. A run that may be perfectly calibrated lies on the edge: its estimate can err to one side only, and towards
0 its distance is added in full.
"""

from dataclasses import dataclass
from typing import TypeVar, get_args

import numpy as np
from scipy.special import ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.clustered import Ece, EceRms
from counterpoint.metrics.debiased import Interval
from counterpoint.metrics.image_sums import ImageSums, image_sums
from counterpoint.metrics.inversion import TAIL, Row, not_rejected
from counterpoint.metrics.sampling import Scatter
from counterpoint.metrics.scores import Grid

_Statistic = TypeVar("_Statistic", Ece, EceRms)


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
    differences = {}
    for binning in get_args(Binning):
        one, two = image_sums(ours, bins, binning), image_sums(other, bins, binning)
        _require_the_same_images(one, two)
        differences[f"ece_{binning}{bins}_debiased"] = _difference(Ece(one), Ece(two))
        differences[f"ece_rms_{binning}{bins}_debiased"] = _difference(EceRms(one), EceRms(two))
    return differences


def _require_the_same_images(one: ImageSums, two: ImageSums) -> None:
    if one.images != two.images:
        raise InputError(f"the runs have {one.images} and {two.images} images; they must be evaluated on the same ones")
    if one.corruptions != two.corruptions:
        raise InputError(
            f"the runs have {one.corruptions} and {two.corruptions} corruptions; "
            "they must be evaluated on the same ones"
        )
    if one.images < 2:
        raise InputError("the runs have one image; an interval over images needs at least two")


def _difference(ours: _Statistic, other: _Statistic) -> Interval:
    a, b = _of_run(ours), _of_run(other)
    scale = np.sqrt(ours.scatter(a.surplus_B).variance * other.scatter(b.surplus_B).variance)
    correlation = float(ours.covariance(other, a.surplus_B, b.surplus_B) / scale) if scale > 0 else 0.0
    value = a.value - b.value
    # As in `error_difference`, two more images count, one for each run: few images without a difference prove little.
    least = float(ndtri(1 - TAIL) * np.sqrt(2) / ours.sums.images)
    below = _joined(a.value - a.low, b.high - b.value, correlation if a.low > 0 else -1.0, least)
    above = _joined(b.value - b.low, a.high - a.value, correlation if b.low > 0 else -1.0, least)
    return Interval(value, max(value - below, -1.0), min(value + above, 1.0))


@dataclass(frozen=True, eq=False)
class _OfRun:
    """A run's debiased value with its interval, and the population that has that value."""

    value: float
    low: float
    high: float
    surplus_B: Floats


def _of_run(statistic: Ece | EceRms) -> _OfRun:
    """The value is that of the likeliest population whose plug-in value is the observed one on average; 0 if all exceed
    it."""
    sums, observed = statistic.sums, statistic.observed
    size_B, sign_B = np.abs(sums.surplus_B), np.where(sums.surplus_B > 0, 1.0, -1.0)
    step_B = statistic.deviation**2 / np.max(statistic.deviation**2)

    def likeliest(x: float) -> Floats:
        """Of all with its Σ |surplus|, it has the least Σ (surplus − observed surplus)² / variance."""
        return sign_B * np.clip(size_B + x * step_B, 0.0, sums.share_B)

    def evenly_off(x: float) -> Floats:
        return sign_B * x * sums.confidence_B

    def mean(scatter: Scatter) -> float:
        return scatter.mean

    reach = float(np.max(size_B / step_B))
    row = Row(lambda x: statistic.scatter(likeliest(x)), -reach, 1 / float(step_B.min()), precision=1e-9)
    even_row = Row(lambda x: statistic.scatter(evenly_off(x)), 0.0, 1.0)
    surplus_B = likeliest(row.where(mean, observed))
    value = statistic.scatter(surplus_B).truth
    may_be_even = statistic.may_come_from(evenly_off(even_row.where(mean, observed)))
    low, high = not_rejected((row, even_row) if may_be_even else (row,), observed)
    return _OfRun(value, min(value, low), max(value, high), surplus_B)


def _joined(one: float, other: float, correlation: float, least: float) -> float:
    return float(np.sqrt(max(one**2 + other**2 - 2 * correlation * one * other, 0.0) + least**2))
