"""The reliability diagram of one model as bars, one for each bin of confidence."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from markupsafe import Markup

from counterpoint.records.figures import Bin
from counterpoint.report.bins import wilson_interval
from counterpoint.report.drawing.plots import FIFTHS
from counterpoint.report.drawing.strokes import (
    Panel,
    box,
    drawing,
    group,
    line,
    markup,
    text,
    x_axis,
    y_axis,
)
from counterpoint.report.tables import percent, with_sign

_WIDTH, _HEIGHT = 360, 350  # about a phone's width, so that text keeps its size there


def equal_width_chart(bins: Sequence[Bin], alternative: str, *, places: int = 0) -> Markup:
    """Bars of accuracy over confidence, with its interval and the gap to the mean confidence; the counts below.

    `places` is how many columns of equal width lie over the bars, for a page that marks one of them.
    """
    svg = drawing("equal-width", alternative, _WIDTH, _HEIGHT)
    panel, counts = Panel(top=12, height=236), Panel(top=268, height=44)
    y_axis(svg, panel, range(0, 101, 20), "accuracy, %")
    x_axis(svg, counts, FIFTHS, "confidence, %")
    most = max(row.count for row in bins)
    for row, element in zip(bins, _bars(svg, panel, counts, bins), strict=True):
        middle = panel.x((row.low + row.high) / 2)
        low, high = wilson_interval(row.accuracy, row.count)
        line(element, "interval", middle, panel.y(low), middle, panel.y(high))
        text(element, middle, counts.y(row.count / most) - 3, short_count(row.count), "count")
    text(svg, panel.left - 6, counts.y(0), "images", "end")
    for number in range(places):
        box(svg, "place", panel.x(number / places), panel.top, panel.width / places, counts.y(0))
    return markup(svg)


def _bars(svg: Element, panel: Panel, counts: Panel, bins: Sequence[Bin]) -> list[Element]:
    """A group for each bin, and the diagonal."""
    most = max(row.count for row in bins)
    groups = [group(svg, _bin_in_words(row)) for row in bins]
    for row, element in zip(bins, groups, strict=True):
        left, width = panel.x(row.low) + 0.75, panel.width * (row.high - row.low) - 1.5
        box(element, "accuracy-bar", left, panel.y(row.accuracy), width, panel.y(0))
        _gap(element, panel, row, left, width)
        line(element, "confidence-mark", left, panel.y(row.confidence), left + width, panel.y(row.confidence))
        box(element, "count-bar", left, counts.y(row.count / most), width, counts.y(0))
    line(svg, "perfect", panel.x(0), panel.y(0), panel.x(1), panel.y(1))
    return groups


def short_count(count: int) -> str:
    """A count in at most four characters: 402, 1.2k, 45k, 750k."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _gap(parent: Element, panel: Panel, row: Bin, left: float, width: float) -> None:
    kind = "over" if row.confidence > row.accuracy else "under"
    high, low = sorted((panel.y(row.confidence), panel.y(row.accuracy)))
    box(parent, kind, left, high, width, low)


def _bin_in_words(row: Bin) -> str:
    return (
        f"confidence {percent(row.low)} to {with_sign(row.high)}, images: {row.count:,}, "
        f"mean confidence {with_sign(row.confidence)}, accuracy {with_sign(row.accuracy)}"
    )
