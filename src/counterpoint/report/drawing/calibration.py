"""Charts of accuracy beside confidence: reliability diagrams, and both against severity."""

from collections.abc import Sequence
from xml.etree.ElementTree import Element

from markupsafe import Markup

from counterpoint.records.figures import Bin
from counterpoint.report.bins import wilson_interval
from counterpoint.report.drawing.strokes import (
    Panel,
    box,
    circle,
    drawing,
    evenly_placed,
    group,
    line,
    markup,
    path,
    text,
    x_axis,
    y_axis,
)
from counterpoint.report.severities import Rates, Severity
from counterpoint.report.tables import percent, with_sign

_WIDTH, _HEIGHT = 360, 350  # about a phone's width, so that text keeps its size there
_SMALL_WIDTH, _SMALL_HEIGHT = 180, 196  # two beside each other on a phone
_FIFTHS = {tick / 100: str(tick) for tick in range(0, 101, 20)}


def equal_width_chart(bins: Sequence[Bin], alternative: str, *, places: int = 0) -> Markup:
    """Bars of accuracy over confidence, with its interval and the gap to the mean confidence; the counts below.

    `places` is how many columns of equal width lie over the bars, for a page that marks one of them.
    """
    svg = drawing("equal-width", alternative, _WIDTH, _HEIGHT)
    panel, counts = Panel(top=12, height=236), Panel(top=268, height=44)
    y_axis(svg, panel, range(0, 101, 20), "accuracy")
    x_axis(svg, counts, _FIFTHS, "confidence, %")
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


def small_equal_width_chart(bins: Sequence[Bin], alternative: str) -> Markup:
    """The same, small enough to stand beside others: no intervals, and the counts are bars without numbers."""
    svg = drawing("equal-width", alternative, _SMALL_WIDTH, _SMALL_HEIGHT)
    panel = Panel(top=8, height=130, left=28, width=138)
    counts = Panel(top=146, height=28, left=28, width=138)
    y_axis(svg, panel, range(0, 101, 50))
    x_axis(svg, counts, {0: "0", 0.5: "50", 1: "100"}, "")
    _bars(svg, panel, counts, bins)
    return markup(svg)


def _bars(svg: Element, panel: Panel, counts: Panel, bins: Sequence[Bin]) -> list[Element]:
    """A group for each bin, and the diagonal."""
    most = max(row.count for row in bins)
    groups = [group(svg, _bin_in_words(row)) for row in bins]
    for row, element in zip(bins, groups, strict=True):
        left, width = panel.x(row.low) + 0.75, panel.width * (row.high - row.low) - 1.5
        box(element, "accuracy-bar", left, panel.y(row.accuracy), width, panel.y(0))
        _gap(element, panel, Rates(row.accuracy, row.confidence), left, width)
        line(element, "confidence-mark", left, panel.y(row.confidence), left + width, panel.y(row.confidence))
        box(element, "count-bar", left, counts.y(row.count / most), width, counts.y(0))
    line(svg, "perfect", panel.x(0), panel.y(0), panel.x(1), panel.y(1))
    return groups


def equal_mass_chart(bins: Sequence[Bin], ticks: Sequence[int], alternative: str) -> Markup:
    """Confidence and accuracy over the images in order of confidence: the area between them is the ECE."""
    svg = drawing("equal-mass", alternative, _WIDTH, _HEIGHT)
    panel = Panel(top=12, height=300, bottom=ticks[0] / 100)
    y_axis(svg, panel, ticks, "confidence and accuracy")
    x_axis(svg, panel, _FIFTHS, "share of images, least confident first, %")
    total = sum(row.count for row in bins)
    before = 0
    confidence: list[tuple[float, float]] = []
    accuracy: list[tuple[float, float]] = []
    for row in bins:
        left, right = panel.x(before / total), panel.x((before + row.count) / total)
        before += row.count
        _gap(group(svg, _bin_in_words(row)), panel, Rates(row.accuracy, row.confidence), left, right - left)
        confidence += [(x, panel.y(row.confidence)) for x in (left, right)]
        accuracy += [(x, panel.y(row.accuracy)) for x in (left, right)]
    path(svg, "accuracy-line", accuracy)
    path(svg, "confidence-line", confidence)
    return markup(svg)


def severity_chart(points: Sequence[Severity], ticks: Sequence[int], alternative: str) -> Markup:
    """Accuracy and mean confidence as the corruption grows; thin lines are the members."""
    svg = drawing("severity", alternative, _WIDTH, _HEIGHT)
    panel = Panel(top=12, height=300, bottom=ticks[0] / 100)
    places = evenly_placed(len(points))
    y_axis(svg, panel, ticks, "accuracy and confidence")
    names = (str(point.number) if point.number else "clean" for point in points)
    x_axis(svg, panel, dict(zip(places, names, strict=True)), "severity")
    xs = [panel.x(place) for place in places]
    for i in range(len(points[0].members)):
        _two_lines(svg, panel, xs, [point.members[i] for point in points], "member-line ")
    _two_lines(svg, panel, xs, [point.ensemble for point in points])
    for x, point in zip(xs, points, strict=True):
        element = group(svg, f"{point.name}: {_rates_in_words(point.ensemble)}")
        _gap(element, panel, point.ensemble, x - 5, 10)
        circle(element, "accuracy-point", x, panel.y(point.ensemble.accuracy), 3.5)
        circle(element, "confidence-point", x, panel.y(point.ensemble.confidence), 3.5)
    return markup(svg)


def _two_lines(svg: Element, panel: Panel, xs: Sequence[float], rates: Sequence[Rates], kind: str = "") -> None:
    both = list(zip(xs, rates, strict=True))
    path(svg, f"{kind}accuracy-line", [(x, panel.y(point.accuracy)) for x, point in both])
    path(svg, f"{kind}confidence-line", [(x, panel.y(point.confidence)) for x, point in both])


def short_count(count: int) -> str:
    """A count in at most four characters: 402, 1.2k, 45k, 750k."""
    if count < 1000:
        return str(count)
    return f"{count / 1000:.1f}k" if count < 9950 else f"{count / 1000:.0f}k"


def _gap(parent: Element, panel: Panel, rates: Rates, left: float, width: float) -> None:
    kind = "over" if rates.confidence > rates.accuracy else "under"
    high, low = sorted((panel.y(rates.confidence), panel.y(rates.accuracy)))
    box(parent, kind, left, high, width, low)


def _bin_in_words(row: Bin) -> str:
    return (
        f"confidence {percent(row.low)} to {with_sign(row.high)}, images: {row.count:,}, "
        f"{_rates_in_words(Rates(row.accuracy, row.confidence))}"
    )


def _rates_in_words(rates: Rates) -> str:
    return f"mean confidence {with_sign(rates.confidence)}, accuracy {with_sign(rates.accuracy)}"
