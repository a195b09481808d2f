"""95 % intervals over images: Student's for a mean, and test inversion for a plug-in calibration error.

Images that belong together count as one draw, as `groups` says.

Test inversion: an interval holds every truth that the observed value does not reject, each tail at 2.5 %.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import gammainc, stdtrit

from counterpoint.metrics.checks import Floats, Integers
from counterpoint.metrics.groups import Groups, moved_by, students

TAIL = 0.025


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval over images. The interval says nothing about other seeds.

    >>> from counterpoint.metrics import Interval
    >>> Interval(value=0.02, low=0.01, high=0.03).low
    0.01
    """

    value: float
    low: float
    high: float


def interval_of_mean(values_N: Floats, groups: Groups | None = None) -> Interval:
    """Student's t interval."""
    if groups is not None:
        return interval_of_ratio(groups.sums(values_N), groups.sizes_G)
    value = float(values_N.mean())
    margin = float(stdtrit(len(values_N) - 1, 1 - TAIL) * values_N.std(ddof=1) / np.sqrt(len(values_N)))
    return Interval(value, value - margin, value + margin)


def interval_of_ratio(sums_G: Floats, sizes_G: Floats | Integers) -> Interval:
    """Student's t interval of a mean over images, from each group's sum and number of images (see `groups`)."""
    value = float(sums_G.sum() / sizes_G.sum())
    margin = students(len(sums_G)) * float(np.sqrt((moved_by(sums_G, sizes_G) ** 2).sum()))
    return Interval(value, value - margin, value + margin)


@dataclass(frozen=True)
class Scatter:
    """The population's true calibration error, and the mean and variance of the plug-in value over samples."""

    truth: float
    mean: float
    variance: float

    def share_below(self, value: float) -> float:
        """The chance of a smaller plug-in value.

        The value is taken as gamma distributed, since it is positive and its distribution is skewed.
        """
        if self.variance <= 1e-12 * self.mean**2:  # hardly any scatter: the share jumps from 0 to 1 at the mean
            return float(np.heaviside(value - self.mean, 0.5))
        return float(gammainc(self.mean**2 / self.variance, value * self.mean / self.variance))


@dataclass(frozen=True)
class Row:
    """A row of populations whose gaps grow with x, from no gaps at `start` to the largest at `end`."""

    scatter: Callable[[float], Scatter]
    start: float
    end: float
    precision: float = 1e-6  # of x

    def __post_init__(self) -> None:
        # Each level that is looked for begins at the ends, and its population is asked for once more when it is found.
        object.__setattr__(self, "scatter", cache(self.scatter))

    def where(self, rising: Callable[[Scatter], float], level: float) -> float:
        """The x at which `rising` reaches `level`, or the first or last one if none does."""

        def excess(x: float) -> float:
            return rising(self.scatter(x)) - level

        if excess(self.start) >= 0:
            return self.start
        if excess(self.end) <= 0:
            return self.end
        from scipy.optimize import brentq  # takes a quarter of a second to import, which a training does not need

        return float(brentq(excess, self.start, self.end, xtol=self.precision))

    def truth_where(self, rising: Callable[[Scatter], float], level: float) -> float:
        """The truth of the population there."""
        return self.scatter(self.where(rising, level)).truth


def not_rejected(rows: tuple[Row, ...], observed: float, tail: float = TAIL) -> tuple[float, float]:
    """The lowest and the highest truth on any of the `rows` that a plug-in value of `observed` does not reject."""

    def share_above(scatter: Scatter) -> float:
        return 1 - scatter.share_below(observed)

    lows = [row.truth_where(share_above, tail) for row in rows]
    highs = [row.truth_where(share_above, 1 - tail) for row in rows]
    return min(lows), max(highs)
