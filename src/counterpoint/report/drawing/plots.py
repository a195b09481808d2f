"""Several runs on one axis: lines over a share of images, over severities or over confidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

from markupsafe import Markup

from counterpoint.records.figures import Bin
from counterpoint.report.drawing.labels import label_runs_directly
from counterpoint.report.drawing.series import Ink, Series, draw_series, series_group
from counterpoint.report.drawing.strokes import Panel, box, drawing, line, markup, text, x_axis, y_axis

FIFTHS: Mapping[float, str] = {tick / 100: str(tick) for tick in range(0, 101, 20)}
HALVES: Mapping[float, str] = {0: "0", 0.5: "50", 1: "100"}


@dataclass(frozen=True)
class Axes:
    """Where the ticks are, and what stands beside them. `y_ticks` are in percent of the values."""

    x_ticks: Mapping[float, str]
    x_title: str
    y_ticks: Sequence[float]
    y_title: str

    @property
    def ends(self) -> tuple[float, float]:
        return self.y_ticks[0] / 100, self.y_ticks[-1] / 100


def series_chart(kind: str, axes: Axes, series: Sequence[Series], alternative: str, *, small: bool = False) -> Markup:
    """Members lie below the runs. An axis that goes below 0 has a line there."""
    svg, panel = _framed(kind, axes, alternative, small)
    bottom, ceiling = axes.ends
    if bottom < 0 < ceiling:
        line(svg, "zero-line", panel.x(0), panel.y(0), panel.x(1), panel.y(0))
    _draw_all(svg, panel, series)
    if not small:
        label_runs_directly(svg, panel, series)
    return markup(svg)


def reliability_chart(
    series: Sequence[Series], counts: Sequence[tuple[Ink, Sequence[Bin]]], alternative: str, *, small: bool = False
) -> Markup:
    """Accuracy over confidence, with the diagonal of perfect calibration; below it the images of each bin."""
    svg = _sheet("reliability", alternative, small)
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
    _counts(svg, below, counts)
    _draw_all(svg, panel, series)
    return markup(svg)


def _framed(kind: str, axes: Axes, alternative: str, small: bool) -> tuple[Element, Panel]:
    svg = _sheet(kind, alternative, small)
    bottom, ceiling = axes.ends
    panel = (
        Panel(top=8, height=158, left=28, width=138, bottom=bottom, ceiling=ceiling)
        if small
        else Panel(top=12, height=300, bottom=bottom, ceiling=ceiling)
    )
    y_axis(svg, panel, axes.y_ticks, "" if small else axes.y_title)
    x_axis(svg, panel, axes.x_ticks, "" if small else axes.x_title)
    return svg, panel


def _sheet(kind: str, alternative: str, small: bool) -> Element:
    """About a phone's width, so that text keeps its size there; of the small ones two stand beside each other."""
    return drawing(kind, alternative, *((180, 196) if small else (360, 350)))


def _draw_all(svg: Element, panel: Panel, series: Sequence[Series]) -> None:
    for one in sorted(series, key=lambda one: one.member is None):
        draw_series(svg, panel, one)


def _counts(svg: Element, panel: Panel, counts: Sequence[tuple[Ink, Sequence[Bin]]]) -> None:
    """The bars of the runs stand side by side within each bin."""
    most = max(row.count for _, bins in counts for row in bins)
    for number, (ink, bins) in enumerate(counts):
        element = series_group(svg, ink)
        for row in bins:
            share = (panel.width * (row.high - row.low) - 1.5) / len(counts)
            left = panel.x(row.low) + 0.75 + number * share
            box(element, "count-bar", left, panel.y(row.count / most), share, panel.y(0))
