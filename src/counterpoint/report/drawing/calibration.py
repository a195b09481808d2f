"""Reliability diagrams: one model as bars, or several runs as lines, over bins of confidence."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from counterpoint.records.figures import Bin
from counterpoint.report.bins import accuracy_interval
from counterpoint.report.drawing.axes import FIFTHS, HALVES, Panel, x_axis, y_axis
from counterpoint.report.drawing.series import Ink, Point, Series, draw_all, series_group
from counterpoint.report.drawing.strokes import box, group, line, markup, sheet, text
from counterpoint.report.numbers import percent, signed, with_sign


@dataclass(frozen=True)
class RunBins:
    """The equal-width bins of one run, and of each of its members where these are known."""

    ink: Ink
    bins: Sequence[Bin]
    members: Sequence[Sequence[Bin]] = ()


def reliability_chart(runs: Sequence[RunBins], alternative: str, *, small: bool = False) -> Markup:
    """Accuracy over confidence, with the diagonal of perfect calibration; below it the images of each bin.

    A small diagram is of one severity. It has no intervals, because an image is in its bins once for each corruption.
    """
    svg = sheet("reliability", alternative, small=small)
    panel, below = (
        (Panel(top=8, height=130, left=28, width=138), Panel(top=146, height=28, left=28, width=138))
        if small
        else (Panel(top=12, height=236), Panel(top=268, height=44))
    )
    y_axis(svg, panel, range(0, 101, 50 if small else 20), "" if small else "accuracy, %")
    x_axis(svg, below, HALVES if small else FIFTHS, "" if small else "confidence, %")
    line(svg, "perfect", panel.x(0), panel.y(0), panel.x(1), panel.y(1))
    if not small:
        text(svg, panel.x(0.03), panel.y(0.95), "under-confident", "region start")
        text(svg, panel.x(0.97), panel.y(0.03), "over-confident", "region end")
        text(svg, panel.left - 6, below.y(0), "images", "end")
    _counts(svg, below, runs)
    draw_all(svg, panel, [one for run in runs for one in reliability_series(run, intervals=not small)])
    return markup(svg)


def reliability_series(run: RunBins, *, intervals: bool) -> list[Series]:
    """Accuracy over mean confidence. The members have no intervals, which would hide the ensemble."""
    members = [Series(run.ink, _points(bins, intervals=False), member=i) for i, bins in enumerate(run.members, start=1)]
    return [Series(run.ink, _points(run.bins, intervals=intervals)), *members]


def _points(bins: Sequence[Bin], *, intervals: bool) -> list[Point]:
    """A bin with few images has a small marker, as it says little."""
    most = max(row.count for row in bins)
    return [
        Point(
            row.confidence,
            row.accuracy,
            bin_in_words(row, interval=intervals),
            accuracy_interval(row) if intervals else None,
            weight=math.sqrt(row.count / most),
        )
        for row in bins
    ]


def bin_in_words(row: Bin, *, interval: bool) -> str:
    """One fact on each line."""
    found = accuracy_interval(row) if interval else None
    lines = [
        f"bin: confidence {percent(row.low)} to {with_sign(row.high)}",
        f"mean confidence {with_sign(row.confidence)}",
        f"accuracy {with_sign(row.accuracy)}"
        + (f" (95 % interval {100 * found[0]:.1f} to {100 * found[1]:.1f}\N{NO-BREAK SPACE}%)" if found else ""),
        f"over-confidence {signed(row.confidence - row.accuracy)} points",
        f"images: {row.count:,}",
    ]
    return "\n".join(lines)


def _counts(svg: Element, panel: Panel, runs: Sequence[RunBins]) -> None:
    """The bars of the runs stand side by side within each bin."""
    most = max(row.count for run in runs for row in run.bins)
    for number, run in enumerate(runs):
        element = series_group(svg, run.ink)
        for row in run.bins:
            share = (panel.width * (row.high - row.low) - 1.5) / len(runs)
            left = panel.x(row.low) + 0.75 + number * share
            box(element, "count-bar", left, panel.y(row.count / most), share, panel.y(0))


def equal_width_chart(bins: Sequence[Bin], alternative: str, *, places: int = 0) -> Markup:
    """Bars of accuracy over confidence, with its interval and the gap to the mean confidence; the counts below.

    `places` is how many columns of equal width lie over the bars, for a page that marks one of them.
    """
    svg = sheet("equal-width", alternative)
    panel, counts = Panel(top=12, height=236), Panel(top=268, height=44)
    y_axis(svg, panel, range(0, 101, 20), "accuracy, %")
    x_axis(svg, counts, FIFTHS, "confidence, %")
    most = max(row.count for row in bins)
    groups = [group(svg, _bar_in_words(row)) for row in bins]
    line(svg, "perfect", panel.x(0), panel.y(0), panel.x(1), panel.y(1))
    for row, element in zip(bins, groups, strict=True):
        left, width = panel.x(row.low) + 0.75, panel.width * (row.high - row.low) - 1.5
        confidence, accuracy, middle = panel.y(row.confidence), panel.y(row.accuracy), panel.x((row.low + row.high) / 2)
        box(element, "accuracy-bar", left, accuracy, width, panel.y(0))
        gap = "over" if row.confidence > row.accuracy else "under"
        box(element, gap, left, min(confidence, accuracy), width, max(confidence, accuracy))
        line(element, "confidence-mark", left, confidence, left + width, confidence)
        box(element, "count-bar", left, counts.y(row.count / most), width, counts.y(0))
        if interval := accuracy_interval(row):
            line(element, "interval", middle, panel.y(interval[0]), middle, panel.y(interval[1]))
        text(element, middle, counts.y(row.count / most) - 3, short_count(row.count), "count")
    text(svg, panel.left - 6, counts.y(0), "images", "end")
    for number in range(places):
        box(svg, "place", panel.x(number / places), panel.top, panel.width / places, counts.y(0))
    return markup(svg)


def short_count(count: int) -> str:
    """A count in at most four characters: 402, 1.2k, 45k, 750k."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _bar_in_words(row: Bin) -> str:
    return (
        f"confidence {percent(row.low)} to {with_sign(row.high)}, images: {row.count:,}, "
        f"mean confidence {with_sign(row.confidence)}, accuracy {with_sign(row.accuracy)}"
    )
