"""Reliability diagrams as inline SVG. Colours are classes that the page's style sheet fills in, light or dark."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree.ElementTree import Element, SubElement, tostring

from markupsafe import Markup

from counterpoint.report.tables import percent, with_sign

_WIDTH, _HEIGHT = 360, 350  # about a phone's width, so that text keeps its size there
_STEPS = (1, 2, 5, 10, 20)

Bin = dict[str, Any]


@dataclass(frozen=True)
class Panel:
    """A rectangle of the drawing that maps x in [0, 1] and y in [bottom, 1] to units."""

    top: float
    height: float
    bottom: float = 0.0
    left: float = 46.0
    width: float = 302.0

    def x(self, value: float) -> float:
        return self.left + self.width * value

    def y(self, value: float) -> float:
        return self.top + self.height * (1 - value) / (1 - self.bottom)


def equal_width_figure(bins: Sequence[Bin], alternative: str) -> Markup:
    """Bars of accuracy over confidence, the gap to the mean confidence drawn on them, and the counts below."""
    svg = _drawing("equal-width", alternative)
    panel, counts = Panel(top=12, height=236), Panel(top=268, height=44)
    _y_axis(svg, panel, range(0, 101, 20), "accuracy")
    _x_axis(svg, counts, "confidence")
    most = max(row["count"] for row in bins)
    for row in bins:
        group = _bin_group(svg, row)
        left, width = panel.x(row["low"]) + 0.75, panel.width * (row["high"] - row["low"]) - 1.5
        _box(group, "accuracy-bar", left, panel.y(row["accuracy"]), width, panel.y(0))
        _gap(group, panel, row, left, width)
        _line(group, "confidence-mark", left, panel.y(row["confidence"]), left + width, panel.y(row["confidence"]))
        top = counts.y(row["count"] / most)
        _box(group, "count-bar", left, top, width, counts.y(0))
        _text(group, left + width / 2, top - 3, short_count(row["count"]), "count")
    _line(svg, "perfect", panel.x(0), panel.y(0), panel.x(1), panel.y(1))
    _text(svg, panel.left - 6, counts.y(0), "images", "end")
    return _markup(svg)


def equal_mass_figure(bins: Sequence[Bin], ticks: Sequence[int], alternative: str) -> Markup:
    """Confidence and accuracy over the images in order of confidence: the area between them is the ECE."""
    svg = _drawing("equal-mass", alternative)
    panel = Panel(top=12, height=300, bottom=ticks[0] / 100)
    _y_axis(svg, panel, ticks, "confidence and accuracy")
    _x_axis(svg, panel, "share of images, least confident first")
    total = sum(row["count"] for row in bins)
    before, confidence, accuracy = 0, "", ""
    for row in bins:
        left, right = panel.x(before / total), panel.x((before + row["count"]) / total)
        before += row["count"]
        _gap(_bin_group(svg, row), panel, row, left, right - left)
        confidence += _step(confidence, left, right, panel.y(row["confidence"]))
        accuracy += _step(accuracy, left, right, panel.y(row["accuracy"]))
    SubElement(svg, "path", {"class": "accuracy-line", "d": accuracy})
    SubElement(svg, "path", {"class": "confidence-line", "d": confidence})
    return _markup(svg)


def percent_ticks(lowest: float) -> list[int]:
    """At most six round percentages that end at 100 and start at or below `lowest` (a fraction)."""
    span = 100 * (1 - lowest)
    step = next(step for step in _STEPS if 5 * step >= span)
    intervals = max(1, math.ceil(span / step))
    return list(range(100 - intervals * step, 101, step))


def short_count(count: int) -> str:
    """A count in at most four characters: 402, 1.2k, 45k, 750k."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _drawing(kind: str, alternative: str) -> Element:
    return Element(
        "svg", {"class": kind, "viewBox": f"0 0 {_WIDTH} {_HEIGHT}", "role": "img", "aria-label": alternative}
    )


def _bin_group(svg: Element, row: Bin) -> Element:
    """A group with a tooltip for one bin."""
    group = SubElement(svg, "g")
    SubElement(group, "title").text = (
        f"confidence {percent(row['low'])} to {with_sign(row['high'])}, images: {row['count']:,}, "
        f"mean confidence {with_sign(row['confidence'])}, accuracy {with_sign(row['accuracy'])}"
    )
    return group


def _gap(group: Element, panel: Panel, row: Bin, left: float, width: float) -> None:
    kind = "over" if row["confidence"] > row["accuracy"] else "under"
    high, low = sorted((panel.y(row["confidence"]), panel.y(row["accuracy"])))
    _box(group, kind, left, high, width, low)


def _y_axis(svg: Element, panel: Panel, ticks: Sequence[int], title: str) -> None:
    for tick in ticks:
        y = panel.y(tick / 100)
        _line(svg, "grid", panel.x(0), y, panel.x(1), y)
        _text(svg, panel.left - 6, y + 3.5, f"{tick}", "end")
    middle = panel.top + panel.height / 2
    _text(svg, 12, middle, f"{title}, %", "axis", transform=f"rotate(-90 12 {middle:g})")


def _x_axis(svg: Element, panel: Panel, title: str) -> None:
    bottom = panel.top + panel.height
    _line(svg, "axis-line", panel.x(0), bottom, panel.x(1), bottom)
    for tick in range(0, 101, 20):
        _text(svg, panel.x(tick / 100), bottom + 14, f"{tick}", "middle")
    _text(svg, panel.x(0.5), bottom + 32, f"{title}, %", "axis")


def _step(path: str, left: float, right: float, y: float) -> str:
    return f"{'L' if path else 'M'}{left:.2f} {y:.2f}H{right:.2f}"


def _box(parent: Element, kind: str, left: float, top: float, width: float, bottom: float) -> None:
    numbers = {"x": left, "y": top, "width": width, "height": bottom - top}
    SubElement(parent, "rect", {"class": kind, **{name: f"{value:.2f}" for name, value in numbers.items()}})


def _line(parent: Element, kind: str, x1: float, y1: float, x2: float, y2: float) -> None:
    numbers = {"x1": x1, "y1": y1, "x2": x2, "y2": y2}
    SubElement(parent, "line", {"class": kind, **{name: f"{value:.2f}" for name, value in numbers.items()}})


def _text(parent: Element, x: float, y: float, text: str, kind: str, **more: str) -> None:
    SubElement(parent, "text", {"class": kind, "x": f"{x:.2f}", "y": f"{y:.2f}", **more}).text = text


def _markup(svg: Element) -> Markup:
    return Markup(tostring(svg, encoding="unicode"))  # ElementTree has escaped the text
