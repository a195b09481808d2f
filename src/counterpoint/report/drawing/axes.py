"""The axes of a chart: the rectangle that they span, and the ticks on them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from counterpoint.report.drawing.strokes import line, text

FIFTHS: Mapping[float, str] = {tick / 100: str(tick) for tick in range(0, 101, 20)}
HALVES: Mapping[float, str] = {0: "0", 0.5: "50", 1: "100"}
"""Ticks of an axis of percentages."""
_STEPS = (1, 2, 5, 10, 20)


@dataclass(frozen=True)
class Panel:
    """A rectangle of the drawing that maps x in [0, 1] and y in [bottom, ceiling] to units."""

    top: float
    height: float
    bottom: float = 0.0
    ceiling: float = 1.0
    left: float = 46.0
    width: float = 302.0

    def x(self, value: float) -> float:
        return self.left + self.width * value

    def y(self, value: float) -> float:
        return self.top + self.height * (self.ceiling - value) / (self.ceiling - self.bottom)


def y_axis(svg: Element, panel: Panel, ticks: Sequence[float], title: str = "", *, percent: bool = True) -> None:
    """`ticks` of fractions are in percent."""
    for tick in ticks:
        y = panel.y(tick / 100 if percent else tick)
        line(svg, "grid", panel.x(0), y, panel.x(1), y)
        text(svg, panel.left - 6, y + 3.5, f"{tick:g}".replace("-", "−"), "end")
    if title:
        middle = panel.top + panel.height / 2
        text(svg, 12, middle, title, "axis", transform=f"rotate(-90 12 {middle:g})")


def x_axis(svg: Element, panel: Panel, ticks: Mapping[float, str], title: str) -> None:
    """`ticks` are the places in [0, 1] and what stands there."""
    bottom = panel.top + panel.height
    line(svg, "axis-line", panel.x(0), bottom, panel.x(1), bottom)
    for place, label in ticks.items():
        text(svg, panel.x(place), bottom + 14, label, "middle")
    if title:
        text(svg, panel.x(0.5), bottom + 32, title, "axis")


def evenly_placed(names: Sequence[str]) -> dict[str, float]:
    """A place in [0, 1] for each name, at equal distances, with some room at both ends."""
    return {name: 0.05 + 0.9 * i / max(1, len(names) - 1) for i, name in enumerate(names)}


def severity_ticks(places: Mapping[str, float]) -> dict[float, str]:
    """The ticks of an axis of severities, whose names are placed."""
    return {place: name.lower().removeprefix("severity ") for name, place in places.items()}


def percent_ticks(lowest: float) -> list[int]:
    """At most six round percentages that end at 100 and start at or below `lowest` (a fraction)."""
    span = 100 * (1 - lowest)
    step = next(step for step in _STEPS if 5 * step >= span)
    intervals = max(1, math.ceil(span / step))
    return list(range(100 - intervals * step, 101, step))


def ticks_from_zero(highest: float) -> list[float]:
    """At most six round percentages from 0 to `highest` (a fraction), or to 100."""
    return ticks_around_zero(0.0, min(highest, 1.0))


def ticks_around_zero(lowest: float, highest: float) -> list[float]:
    """At most eight round percentages, 0 among them, from `lowest` to `highest` (fractions) or beyond."""
    low, high = min(0.0, 100 * lowest), max(0.0, 100 * highest)
    step = next(step for step in (0.1, 0.2, 0.5, *_STEPS, 50) if 5 * step >= high - low)
    first, last = math.floor(low / step), max(1, math.ceil(high / step))
    return [round(i * step, 1) for i in range(first, last + 1)]
