"""Lines over a share of images, over severities or over confidence: of several runs, or of one run in several ways."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import SubElement

from markupsafe import Markup

from counterpoint.report.drawing.labels import label_runs_directly
from counterpoint.report.drawing.series import Series, draw_all
from counterpoint.report.drawing.strokes import (
    Panel,
    circle,
    drawing,
    evenly_placed,
    line,
    markup,
    path,
    point,
    severity_ticks,
    sheet,
    ticks_from_zero,
    x_axis,
    y_axis,
)


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
