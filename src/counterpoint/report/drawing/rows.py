"""Charts in rows: one for each model, metric or temperature, its name above its track."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from counterpoint.records.figures import Estimate
from counterpoint.report.drawing.axes import ticks_from_zero
from counterpoint.report.drawing.series import Ink, marker, series_group
from counterpoint.report.drawing.strokes import box, circle, drawing, line, markup, point, text
from counterpoint.report.numbers import percent_interval, with_sign

_WIDTH, _LEFT, _RIGHT = 360, 6.0, 348.0
_ROW, _TRACK, _FOOT = 34, 22, 36  # height of a row, its track below its top, room for the axis


@dataclass(frozen=True)
class EstimateRow:
    """A calibration error as observed, what noise alone would show, and what is left with its interval."""

    label: str
    observed: float
    estimate: Estimate
    ink: Ink
    is_member: bool = False

    @property
    def words(self) -> str:
        found = self.estimate
        return (
            f"observed {with_sign(self.observed)}, noise floor {with_sign(found.floor)}, debiased "
            f"{with_sign(found.debiased)}, 95 % interval {percent_interval(found.low, found.high)} %"
        )


@dataclass(frozen=True)
class DifferenceRow:
    """This run's figure less another's with its interval, in any unit, and both as text."""

    label: str
    value: float
    low: float
    high: float
    number: str
    unit: str
    interval: str

    @property
    def shown(self) -> str:
        return f"{self.number} {self.unit}".rstrip()

    @property
    def verdict(self) -> str:
        return "lower" if self.high < 0 else "higher" if self.low > 0 else "unclear"

    @property
    def words(self) -> str:
        return f"{self.label} {self.shown}, 95 % interval {self.interval}"


@dataclass(frozen=True)
class Pair:
    """The same figure on clean and on corrupted images; None where there are none."""

    label: str
    clean: float
    corrupted: float | None
    words: str


@dataclass(frozen=True)
class Strip:
    """One value per run, with their mean and the standard deviation around it."""

    label: str
    values: Sequence[tuple[Ink, float, str]]  # the words say what the value is
    mean: float
    deviation: float


def estimates_chart(rows: Sequence[EstimateRow], alternative: str) -> Markup:
    """A bar to the observed value, a mark at its noise floor, and the debiased value with its interval."""
    highest = max(max(row.observed, row.estimate.high) for row in rows)
    svg, at = _percent_rows("estimates", alternative, len(rows), highest)
    for i, row in enumerate(rows):
        floor, debiased, low, high = map(
            at, (row.estimate.floor, row.estimate.debiased, row.estimate.low, row.estimate.high)
        )
        of_run = series_group(svg, row.ink, "row")
        name = f"{row.ink.label}, {row.label}" if row.is_member else row.label
        element, y = _row(of_run, i, debiased, row.label, f"{name}\n{row.words}")
        box(element, "observed-bar", at(0), y - 6, at(row.observed) - at(0), y + 6)
        line(element, "floor-mark", floor, y - 9, floor, y + 9)
        line(element, "interval", low, y, high, y)
        circle(element, "debiased-point", debiased, y, 3.5)
    return markup(svg)


def differences_chart(rows: Sequence[DifferenceRow], alternative: str) -> Markup:
    """Each row on its own scale, as units differ: what counts is on which side of 0 the interval lies."""
    svg = drawing("rows differences", alternative, _WIDTH, _ROW * len(rows) + _FOOT)
    middle, half = (_LEFT + _RIGHT) / 2, (_RIGHT - _LEFT) / 2
    for i, row in enumerate(rows):
        per_unit = 0.95 * half / (max(abs(row.low), abs(row.high)) or 1.0)
        element, y = _row(
            svg, i, middle + per_unit * row.value, row.label, f"{row.label}\n{row.shown}\n95 % interval {row.interval}"
        )
        text(element, _RIGHT, y - 11, row.shown, "end")
        line(element, "zero-line", middle, y - 6, middle, y + 8)
        line(element, f"interval {row.verdict}", middle + per_unit * row.low, y, middle + per_unit * row.high, y)
        circle(element, f"difference-point {row.verdict}", middle + per_unit * row.value, y, 4)
    foot = _ROW * len(rows) + 20
    text(svg, _LEFT, foot, "← lower: better", "axis start")
    text(svg, middle, foot, "0", "axis")
    text(svg, _RIGHT, foot, "higher: worse →", "axis end")
    return markup(svg)


def pairs_chart(rows: Sequence[Pair], alternative: str) -> Markup:
    """Two points per row, clean and corrupted, on one scale."""
    highest = max(max(row.clean, row.corrupted or 0) for row in rows)
    svg, at = _percent_rows("pairs", alternative, len(rows), highest)
    for i, row in enumerate(rows):
        element, y = _row(svg, i, at(row.clean), row.label, f"{row.label}\n{row.words}")
        if row.corrupted is not None:
            line(element, "pair-line", at(row.clean), y, at(row.corrupted), y)
            box(element, "corrupted-point", at(row.corrupted) - 4, y - 4, 8, y + 4)
        circle(element, "clean-point", at(row.clean), y, 4.5)
    return markup(svg)


def strips_chart(rows: Sequence[Strip], alternative: str) -> Markup:
    """A marker for each run, over a band of one standard deviation to both sides of the mean."""
    highest = max(max(row.mean + row.deviation, *(value for _, value, _ in row.values)) for row in rows)
    svg, at = _percent_rows("strips", alternative, len(rows), highest)
    for i, row in enumerate(rows):
        y = i * _ROW + _TRACK + 4
        left = at(max(0.0, row.mean - row.deviation))
        box(svg, "spread-band", left, y - 7, at(row.mean + row.deviation) - left, y + 7)
        line(svg, "mean-mark", at(row.mean), y - 9, at(row.mean), y + 9)
        text(svg, _LEFT, y - 11, row.label, "start row-label")
        for ink, value, words in row.values:
            element = point(series_group(svg, ink), at(value), y, f"{ink.label}\n{words}")
            marker(element, ink, at(value), y, 4)
    return markup(svg)


def _percent_rows(kind: str, alternative: str, count: int, highest: float) -> tuple[Element, Callable[[float], float]]:
    """A drawing with a grid of percentages from 0, and the scale that puts a fraction on it."""
    svg = drawing(f"rows {kind}", alternative, _WIDTH, _ROW * count + _FOOT)
    ticks = ticks_from_zero(highest)
    per_fraction, bottom = (_RIGHT - _LEFT) / (ticks[-1] / 100), _ROW * count + 4
    for tick in ticks:
        x = _LEFT + per_fraction * (tick / 100)
        line(svg, "grid", x, 4, x, bottom)
        text(svg, x, bottom + 13, f"{tick:g}", "middle" if tick else "start")
    text(svg, (_LEFT + _RIGHT) / 2, bottom + 28, "%", "axis")
    return svg, lambda fraction: _LEFT + per_fraction * fraction


def _row(parent: Element, number: int, x: float, label: str, words: str) -> tuple[Element, float]:
    """The group of a row, whose point is at `x`, and the height of its track."""
    y = number * _ROW + _TRACK + 4
    element = point(parent, x, y, words)
    text(element, _LEFT, y - 11, label, "start row-label")
    return element, y
