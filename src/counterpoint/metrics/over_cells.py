"""One run's figures over the cells of shifted images, each with a 95 % interval over images.

An image counts once, with all its cells: the interval is over samples of images. Where images belong together, such as
those of one patient, it is over samples of groups, and a group counts once. Calibration errors are debiased: the
truth estimated here is what the same bins would show on infinitely many images. Their interval holds every truth that
the plug-in value does not reject, on two rows of populations, as in `debiased`; but the second, equally far off
everywhere with the observed signs, counts only where gaps as uneven as the observed ones can come from it. How the
value scatters comes from `clustered`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.clustered import Ece, EceRms, calibration_errors
from counterpoint.metrics.groups import Groups, require_enough
from counterpoint.metrics.intervals import (
    TAIL,
    Interval,
    Row,
    Scatter,
    interval_of_mean,
    interval_of_ratio,
    not_rejected,
)
from counterpoint.metrics.scores import Grid, ImageScores, groups_of_cells, images_of_cells


def intervals_over_cells(grid: Grid, bins: int = 15) -> dict[str, Interval]:
    """The error, NLL, Brier score and debiased calibration errors over all cells, with 95 % intervals over images, or
    over their groups.

    `grid` maps each corruption's name to its scores, one per severity. Row i of every cell must be the same image. For
    a calibration error the severities of each corruption are pooled, and the mean is taken over the corruptions.

    >>> import numpy as np
    >>> from counterpoint.metrics import image_scores, intervals_over_cells
    >>> labels = np.arange(40) % 2
    >>> probs = np.eye(2)[np.where(np.arange(40) < 36, labels, 1 - labels)] * 0.9 + 0.05
    >>> found = intervals_over_cells({"fog": [image_scores(probs, labels)]})
    >>> round(found["error"].value, 2), round(found["error"].low, 2), round(found["error"].high, 2)
    (0.1, 0.02, 0.22)
    """
    if images_of_cells(grid) < 2:
        raise InputError("the cells have one image; an interval over images needs at least two")
    groups = groups_of_cells(grid)
    require_enough(groups)
    means = means_of_images([cell for severities in grid.values() for cell in severities])
    return {
        "error": _error(means["error"], groups),
        "nll": _not_below_0(interval_of_mean(means["nll"], groups)),
        "brier": _not_below_0(interval_of_mean(means["brier"], groups)),
        **{name: estimate(one).interval for name, one in calibration_errors(grid, bins).items()},
    }


def means_of_images(cells: Sequence[ImageScores]) -> dict[str, Floats]:
    """Each image's mean error, NLL and Brier score over the cells."""
    return {
        "error": np.mean([~cell.correct for cell in cells], axis=0),
        "nll": np.mean([cell.nll for cell in cells], axis=0),
        "brier": np.mean([cell.brier for cell in cells], axis=0),
    }


@dataclass(frozen=True, eq=False)
class RunEstimate:
    """A run's debiased value with its interval, and the population that has that value."""

    value: float
    low: float
    high: float
    surplus_B: Floats
    draws: float  # how many independent images tell as much

    @property
    def interval(self) -> Interval:
        """As in `error_difference`, more images count than there are: few images without a gap prove little."""
        least = float(ndtri(1 - TAIL)) / self.draws
        below, above = np.hypot((self.value - self.low, self.high - self.value), least)
        return Interval(self.value, max(self.value - float(below), 0.0), self.value + float(above))


def estimate(statistic: Ece | EceRms) -> RunEstimate:
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
    low, high = not_rejected((row, even_row) if may_be_even else (row,), observed, sums.tail)
    return RunEstimate(value, min(value, low), max(value, high), surplus_B, sums.draws)


def _error(errors_N: Floats, groups: Groups | None) -> Interval:
    """The interval counts two more images, one that is always right and one that is always wrong. Without them it would
    have no length where all images are right. With groups it counts two more groups, as large as an independent draw.
    """
    if groups is None:
        around = _not_below_0(interval_of_mean(np.append(errors_N, (0.0, 1.0))))
    else:
        more = groups.images_per_draw_of_errors(errors_N)
        sums_G, sizes_G = np.append(groups.sums(errors_N), (0.0, more)), np.append(groups.sizes_G, (more, more))
        around = _not_below_0(interval_of_ratio(sums_G, sizes_G))
    return Interval(float(errors_N.mean()), around.low, min(around.high, 1.0))


def _not_below_0(found: Interval) -> Interval:
    """None of these figures is below 0."""
    return Interval(found.value, max(found.low, 0.0), found.high)
