"""Names of runs beside their lines, where there is room; the legend names them all."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element

from counterpoint.report.drawing.series import Series, series_group
from counterpoint.report.drawing.strokes import Panel, text

_PER_LETTER, _HEIGHT = 6.0, 11.0  # of a text, on the wide side
_ABOVE, _BELOW = -9.0, 17.0  # from a point to the foot of its label
_APART = 16.0  # from a point to the line of another run, or a label could be either's
_STEPS = 40  # on a line, near enough that none slips through a label

Spot = tuple[float, float]


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def holds(self, spot: Spot) -> bool:
        return self.left <= spot[0] <= self.right and self.top <= spot[1] <= self.bottom

    def meets(self, other: "_Box") -> bool:
        beside = self.right < other.left or other.right < self.left
        return not (beside or self.bottom < other.top or other.bottom < self.top)


def label_runs_directly(svg: Element, panel: Panel, series: Sequence[Series]) -> None:
    """One name beside the solid line of each run, or none at all: a plot with some of the names would mislead."""
    shown = [one for one in series if one.member is None]
    spots = [(one.ink, list(_spots(panel, one))) for one in shown]
    taken = [spot for _, of_one in spots for spot in of_one]
    named, placed = [one for one in shown if one.look == "solid"], list[_Box]()
    for one in named:
        others = [spot for ink, of_one in spots if ink != one.ink for spot in of_one]
        box = next((box for box in _places(panel, one, others) if _is_free(box, taken, placed)), None)
        if box is None:
            return
        placed.append(box)
    for one, box in zip(named, placed, strict=True):
        middle = (box.left + box.right) / 2
        text(series_group(svg, one.ink), middle, box.bottom - 2, one.ink.label, "direct middle")


def _is_free(box: _Box, taken: Iterable[Spot], placed: Iterable[_Box]) -> bool:
    return not any(box.holds(spot) for spot in taken) and not any(box.meets(other) for other in placed)


def _places(panel: Panel, series: Series, others: Sequence[Spot]) -> Iterator[_Box]:
    """Above and below each point, from the last one back, inside the panel and with no other run near the point."""
    half = (_PER_LETTER * len(series.ink.label) + 4) / 2
    inside = panel.x(0), panel.x(1)
    for point in reversed(series.points):
        at = panel.x(point.x), panel.y(point.y)
        if any(math.dist(at, spot) < _APART for spot in others):
            continue
        middle = min(max(at[0], inside[0] + half), inside[1] - half)
        for foot in (at[1] + _ABOVE, at[1] + _BELOW):
            box = _Box(middle - half, foot - _HEIGHT, middle + half, foot + 2)
            if box.left >= inside[0] and panel.top <= box.top and box.bottom <= panel.top + panel.height:
                yield box


def _spots(panel: Panel, series: Series) -> Iterator[Spot]:
    """Places on the lines and whiskers of a series, close to each other."""
    outline = series.outline or [(point.x, point.y) for point in series.points]
    lines = list(pairwise(outline))
    lines += [((at.x, at.interval[0]), (at.x, at.interval[1])) for at in series.points if at.interval]
    for (x1, y1), (x2, y2) in lines:
        for step in range(_STEPS + 1):
            share = step / _STEPS
            yield panel.x(x1 + share * (x2 - x1)), panel.y(y1 + share * (y2 - y1))
