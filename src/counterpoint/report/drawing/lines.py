"""Lines over clean images and the severities, from 0 upwards."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import SubElement

from markupsafe import Markup

from counterpoint.report.drawing.strokes import (
    Panel,
    circle,
    drawing,
    evenly_placed,
    markup,
    path,
    point,
    ticks_from_zero,
    x_axis,
    y_axis,
)

_WIDTH, _HEIGHT = 360, 300


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
    """One line for each series, with a point for each name."""
    svg = drawing(kind, alternative, _WIDTH, _HEIGHT)
    of_tick = 1 / 100 if scale.percent else 1.0
    ticks = ticks_from_zero(max(scale.highest, *(max(line.values) for line in lines)) / (100 * of_tick))
    panel = Panel(top=12, height=250, ceiling=ticks[-1] * of_tick)
    places = evenly_placed(len(names))
    y_axis(svg, panel, ticks, f"{scale.title}, %" if scale.percent else scale.title, percent=scale.percent)
    short = [name.lower().removeprefix("severity ") for name in names]
    x_axis(svg, panel, dict(zip(places, short, strict=True)), "corruption severity")
    for line in lines:
        dots = [(panel.x(place), panel.y(value)) for place, value in zip(places, line.values, strict=True)]
        element = SubElement(svg, "g", {"class": "way"})
        path(element, f"{line.kind}-line", dots)
        for (x, y), name, value in zip(dots, names, line.values, strict=True):
            words = f"{line.label}\n{name}: {scale.show(value)}"
            circle(point(element, x, y, words), f"{line.kind}-point", x, y, 3.5)
    return markup(svg)
