"""Lines over a share of images, over severities or over confidence: of several runs, or of one run in several ways."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element, SubElement

from markupsafe import Markup

from counterpoint.report.drawing.axes import Panel, evenly_placed, severity_ticks, ticks_from_zero, x_axis, y_axis
from counterpoint.report.drawing.series import Series, draw_all, series_group
from counterpoint.report.drawing.strokes import circle, drawing, line, markup, path, point, sheet, text

_PER_LETTER, _HEIGHT = 6.0, 11.0  # of a text, on the wide side
_ABOVE, _BELOW = -9.0, 17.0  # from a point to the foot of its label
_APART = 16.0  # from a point to the line of another run, or a label could be either's
_STEPS = 40  # on a line, near enough that none slips through a label

Spot = tuple[float, float]


@dataclass(frozen=True)
class Axes:
    """Where the ticks are, and what stands beside them. `y_ticks` are in percent of the values."""

    x_ticks: Mapping[float, str]
    x_title: str
    y_ticks: Sequence[float]
    y_title: str


def series_chart(kind: str, axes: Axes, series: Sequence[Series], alternative: str, *, small: bool = False) -> Markup:
    """Members lie below the runs. An axis that goes below 0 has a line there. A small chart has no words."""
    svg = sheet(kind, alternative, small=small)
    bottom, ceiling = axes.y_ticks[0] / 100, axes.y_ticks[-1] / 100
    panel = (
        Panel(top=8, height=158, left=28, width=138, bottom=bottom, ceiling=ceiling)
        if small
        else Panel(top=12, height=300, bottom=bottom, ceiling=ceiling)
    )
    y_axis(svg, panel, axes.y_ticks, "" if small else axes.y_title)
    x_axis(svg, panel, axes.x_ticks, "" if small else axes.x_title)
    if bottom < 0 < ceiling:
        line(svg, "zero-line", panel.x(0), panel.y(0), panel.x(1), panel.y(0))
    draw_all(svg, panel, series)
    if not small:
        label_runs_directly(svg, panel, series)
    return markup(svg)


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
        free = (box for box in _places(panel, one, others) if not any(map(box.holds, taken)))
        box = next((box for box in free if not any(map(box.meets, placed))), None)
        if box is None:
            return
        placed.append(box)
    for one, box in zip(named, placed, strict=True):
        middle = (box.left + box.right) / 2
        text(series_group(svg, one.ink), middle, box.bottom - 2, one.ink.label, "direct middle")


def _places(panel: Panel, series: Series, others: Sequence[Spot]) -> Iterator[_Box]:
    """Above and below each point, from the last one back, inside the panel and with no other run near the point."""
    half = (_PER_LETTER * len(series.ink.label) + 4) / 2
    inside = panel.x(0), panel.x(1)
    for one in reversed(series.points):
        at = panel.x(one.x), panel.y(one.y)
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


@dataclass(frozen=True)
class Line:
    """`kind` is the first part of its classes in the style sheet."""

    label: str
    kind: str
    values: Sequence[float]


@dataclass(frozen=True)
class Scale:
    """What stands at a chart's y axis, whether its values are shown in percent, and one of them as text.

    `highest` is a value that the axis reaches at least, so that charts beside each other have the same axis.
    """

    title: str
    percent: bool
    show: Callable[[float], str]
    highest: float = 0.0


def lines_chart(kind: str, names: Sequence[str], lines: Sequence[Line], scale: Scale, alternative: str) -> Markup:
    """One run over clean images and the severities: a line for each series, with a point for each name."""
    svg = drawing(kind, alternative, 360, 300)
    of_tick = 1 / 100 if scale.percent else 1.0
    ticks = ticks_from_zero(max(scale.highest, *(max(one.values) for one in lines)) / (100 * of_tick))
    panel = Panel(top=12, height=250, ceiling=ticks[-1] * of_tick)
    places = evenly_placed(names)
    y_axis(svg, panel, ticks, f"{scale.title}, %" if scale.percent else scale.title, percent=scale.percent)
    x_axis(svg, panel, severity_ticks(places), "corruption severity")
    for one in lines:
        dots = [(panel.x(place), panel.y(value)) for place, value in zip(places.values(), one.values, strict=True)]
        element = SubElement(svg, "g", {"class": "way"})
        path(element, f"{one.kind}-line", dots)
        for (x, y), name, value in zip(dots, names, one.values, strict=True):
            words = f"{one.label}\n{name}: {scale.show(value)}"
            circle(point(element, x, y, words), f"{one.kind}-point", x, y, 3.5)
    return markup(svg)
