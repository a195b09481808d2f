"""Test inversion: an interval holds every truth that the observed value does not reject, each tail at 2.5 %."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from counterpoint.metrics.sampling import Scatter

TAIL = 0.025


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


def not_rejected(rows: tuple[Row, ...], observed: float) -> tuple[float, float]:
    """The lowest and the highest truth on any of the `rows` that a plug-in value of `observed` does not reject."""

    def share_above(scatter: Scatter) -> float:
        return 1 - scatter.share_below(observed)

    lows = [row.truth_where(share_above, TAIL) for row in rows]
    highs = [row.truth_where(share_above, 1 - TAIL) for row in rows]
    return min(lows), max(highs)
