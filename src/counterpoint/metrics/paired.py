"""The difference between two runs on the same images, ours − other, with its 95 % interval over images.

All figures are better when lower, so a difference below 0 speaks for ours. An image must count once: where it appears
in several cells, compare its mean over the cells with `mean_difference`, and calibration errors with
`calibration_differences`.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, finite, zeros_and_ones
from counterpoint.metrics.groups import Groups, enough_groups
from counterpoint.metrics.intervals import TAIL, Interval, interval_of_mean, interval_of_ratio
from counterpoint.metrics.paired_calibration import calibration_differences
from counterpoint.metrics.scores import ImageScores, require_same_groups


def paired_differences(ours: ImageScores, other: ImageScores) -> dict[str, Interval]:
    """Differences of error, NLL, Brier score and the debiased calibration errors between two models.

    Row i of both must be the same image. Each difference is `ours` minus `other`, with its 95 % interval over images,
    or over groups, if the scores have them.

    >>> import numpy as np
    >>> from counterpoint.metrics import image_scores, paired_differences
    >>> labels = np.arange(40) % 2
    >>> sure = image_scores(np.eye(2)[labels] * 0.8 + 0.1, labels)
    >>> unsure = image_scores(np.eye(2)[labels] * 0.2 + 0.4, labels)
    >>> round(paired_differences(sure, unsure)["nll"].value, 3)
    -0.405
    """
    require_same_groups(ours.groups, other.groups)
    return {
        "error": error_difference(ours.correct, other.correct, ours.group_N),
        "nll": mean_difference(ours.nll, other.nll, ours.group_N),
        "brier": mean_difference(ours.brier, other.brier, ours.group_N),
        **calibration_differences({"clean": [ours]}, {"clean": [other]}),
    }


def mean_difference(ours_N: ArrayLike, other_N: ArrayLike, groups: ArrayLike | None = None) -> Interval:
    """The mean difference between two numbers per image, with Student's t interval.

    `ours_N` and `other_N` are arrays (N,) whose entry i is of the same image. `groups` (N,) says which images belong
    together, such as those of one patient, by equal whole numbers. A group is then one draw: the interval has G − 1
    degrees of freedom for G groups, and fewer than ten are refused.

    >>> from counterpoint.metrics import mean_difference
    >>> interval = mean_difference([0.1, 0.2, 0.4], [0.3, 0.5, 0.5])
    >>> round(interval.value, 2), round(interval.low, 2), round(interval.high, 2)
    (-0.2, -0.45, 0.05)
    """
    ours, other = _same_images(ours_N, other_N)
    return interval_of_mean(ours - other, enough_groups(groups, len(ours)))


def error_difference(correct_N: ArrayLike, other_correct_N: ArrayLike, groups: ArrayLike | None = None) -> Interval:
    """The difference of two errors, with the interval of Bonett & Price 2012.

    The interval counts two more images: one that only the first run has right, and one that only the second has right.
    Without them it would be too short where the runs differ on few images, and of length 0 where they differ on none.

    `groups` is as in `mean_difference`. Then it is Student's interval over groups, and counts two more groups, each as
    large as an independent draw is, judging by the images on which the runs differ.

    >>> from counterpoint.metrics import error_difference
    >>> interval = error_difference([True, True, True, False], [True, True, False, False])
    >>> interval.value  # ours makes one mistake fewer in four images
    -0.25
    """
    ours, other = _same_images(correct_N, other_correct_N)
    zeros_and_ones(ours, "correct_N", len(ours))
    zeros_and_ones(other, "other_correct_N", len(ours))
    if (together := enough_groups(groups, len(ours))) is not None:
        return _error_difference_over(together, other - ours)
    only_ours, only_other = float((ours > other).sum()), float((ours < other).sum())
    total = len(ours) + 2
    centre, differ = (only_other - only_ours) / total, (only_other + only_ours + 2) / total
    margin = float(ndtri(1 - TAIL) * np.sqrt((differ - centre**2) / total))
    return Interval((only_other - only_ours) / len(ours), max(centre - margin, -1.0), min(centre + margin, 1.0))


def _error_difference_over(groups: Groups, difference_N: Floats) -> Interval:
    more = groups.images_per_draw(difference_N, difference_N != 0)
    sums_G = np.append(groups.sums(difference_N), (-more, more))
    around = interval_of_ratio(sums_G, np.append(groups.sizes_G, (more, more)))
    return Interval(float(difference_N.mean()), max(around.low, -1.0), min(around.high, 1.0))


def _same_images(ours_N: ArrayLike, other_N: ArrayLike) -> tuple[Floats, Floats]:
    ours, other = finite(ours_N, "ours_N", ndim=1), finite(other_N, "other_N", ndim=1)
    if len(ours) != len(other):
        raise InputError(f"the runs have {len(ours)} and {len(other)} images; they must be evaluated on the same ones")
    if len(ours) < 2:
        raise InputError("the runs have one image; an interval over images needs at least two")
    return ours, other
