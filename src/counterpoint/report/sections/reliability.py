"""Reliability diagrams of all runs on clean images: can the confidence be trusted?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.figures import Bin
from counterpoint.report.bins import accuracy_interval, bins_in_words, bins_table, reliability_of
from counterpoint.report.drawing.axes import FIFTHS, ticks_around_zero
from counterpoint.report.drawing.calibration import RunBins, bin_in_words, reliability_chart
from counterpoint.report.drawing.plots import Axes, series_chart
from counterpoint.report.drawing.series import Ink, Point, Series, ink_of, legend, reach
from counterpoint.report.numbers import with_sign
from counterpoint.report.run import ReportedRun, by_images
from counterpoint.report.section import Block, Content, Plot

TITLE = "Reliability"


@dataclass(frozen=True)
class ImageSet:
    """The diagrams of all runs on one set of images."""

    label: str
    plots: tuple[Plot, ...]


@dataclass(frozen=True)
class Reliability(Content):
    sets: tuple[ImageSet, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, tuple(plot for one in self.sets for plot in one.plots))


def reliability(runs: Sequence[ReportedRun]) -> Reliability:
    """One set of diagrams for each set of clean images."""
    return Reliability(
        tuple(ImageSet(images, (_equal_width(group), _equal_mass(group))) for images, group in by_images(runs))
    )


def _equal_width(runs: Sequence[ReportedRun]) -> Plot:
    bins = {run.label: reliability_of(run.clean).width15 for run in runs}
    errors = [f"{run.label} {with_sign(run.clean.ensemble.ece_width15)}" for run in runs]
    of_runs = [
        RunBins(ink_of(run), bins[run.label], [one.width15 for one in run.clean.member_reliability]) for run in runs
    ]
    return Plot(
        reliability_chart(of_runs, f"Reliability diagram with equal-width bins. {_in_words(bins)}"),
        legend(runs, members=_has_member_bins(runs)),
        f"Equal-width bins. ECE: {', '.join(errors)}. Each point is one bin of confidence: its height is the share of "
        "right predictions. A whisker, where there is one, is the 95 % interval of that share. A small marker is a bin "
        "with few images. On the diagonal, confidence and accuracy are equal. The bars below show how many images are "
        f"in each bin.{' The members have no intervals here.' if _has_member_bins(runs) else ''}",
        tuple(bins_table(f"{label}: the 15 equal-width bins", rows, intervals=True) for label, rows in bins.items()),
    )


def _equal_mass(runs: Sequence[ReportedRun]) -> Plot:
    bins = {run.label: reliability_of(run.clean).mass15 for run in runs}
    errors = [f"{run.label} {with_sign(run.clean.ensemble.ece_mass15)}" for run in runs]
    series = [_steps(ink_of(run), bins[run.label], (number + 1) / (len(runs) + 1)) for number, run in enumerate(runs)]
    series += [
        _steps(ink_of(run), of_member.mass15, 0.5, member)
        for run in runs
        for member, of_member in enumerate(run.clean.member_reliability, start=1)
    ]
    ticks = ticks_around_zero(reach(series, min), reach(series, max))
    axes = Axes(FIFTHS, "share of images, least confident first, %", ticks, "confidence − accuracy, points")
    return Plot(
        series_chart("equal-mass", axes, series, f"Reliability diagram with equal-mass bins. {_in_words(bins)}"),
        legend(runs, members=_has_member_bins(runs)),
        f"Equal-mass bins. ECE: {', '.join(errors)}. Each step holds about the same number of images. Above 0 the run "
        "is over-confident, below 0 it is under-confident. The area between a line and 0 is the ECE. A whisker, "
        "where there is one, is the 95 % interval.",
        tuple(bins_table(f"{label}: the 15 equal-mass bins", rows, intervals=True) for label, rows in bins.items()),
    )


def _steps(ink: Ink, bins: Sequence[Bin], within: float, member: int | None = None) -> Series:
    """What the confidence is above the accuracy, as steps over the images in order of confidence.

    `within` is where on a step its point stands, so that the whiskers of several runs do not hide each other. Members
    have no whiskers.
    """
    total, before = sum(row.count for row in bins), 0
    points: list[Point] = []
    outline: list[tuple[float, float]] = []
    for row in bins:
        left, right = before / total, (before + row.count) / total
        before += row.count
        found = accuracy_interval(row) if member is None else None
        interval = (row.confidence - found[1], row.confidence - found[0]) if found else None
        gap = row.confidence - row.accuracy
        points.append(Point(left + within * (right - left), gap, bin_in_words(row, interval=True), interval))
        outline += [(left, gap), (right, gap)]
    return Series(ink, points, outline=outline, member=member)


def _has_member_bins(runs: Sequence[ReportedRun]) -> bool:
    """Results of earlier versions have none."""
    return any(run.clean.member_reliability for run in runs)


def _in_words(bins: dict[str, tuple[Bin, ...]]) -> str:
    return " ".join(f"{label}: {bins_in_words(rows)}" for label, rows in bins.items())
