"""Reliability diagrams of each run on clean images: can the confidence be trusted?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.bins import bins_in_words, bins_table, reliability_of
from counterpoint.report.drawing.calibration import equal_mass_chart, equal_width_chart
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.strokes import percent_ticks
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.tables import with_sign

_TITLE = "Reliability"


@dataclass(frozen=True)
class RunReliability:
    """One run's diagrams."""

    label: str
    charts: tuple[Chart, ...]


@dataclass(frozen=True)
class Reliability(Content):
    runs: tuple[RunReliability, ...]

    def blocks(self) -> Iterator[Block]:
        yield Block(_TITLE, tuple(chart.table for run in self.runs for chart in run.charts))


def reliability(runs: Sequence[ReportedRun]) -> Reliability:
    """The y axis of the equal-mass chart is the same for all runs of a page."""
    ticks = percent_ticks(_lowest(runs))
    return Reliability(tuple(RunReliability(run.label, (_equal_width(run), _equal_mass(run, ticks))) for run in runs))


def _lowest(runs: Sequence[ReportedRun]) -> float:
    """The least confidence or accuracy of any equal-mass bin."""
    bins = [row for run in runs for row in reliability_of(run.clean).mass15]
    return min(min(row.confidence, row.accuracy) for row in bins)


def _equal_width(run: ReportedRun) -> Chart:
    bins, figures = reliability_of(run.clean).width15, run.clean.ensemble
    caption = (
        f"Equal-width bins: ECE {with_sign(figures.ece_width15)}, ECE-rms {with_sign(figures.ece_rms_width15)}. "
        "Each bar is a bin of confidence, its height the share of right predictions, the whisker its 95 % interval; "
        "below, the images in each bin."
    )
    alternative = f"Reliability diagram of {run.label} with equal-width bins. {bins_in_words(bins)}"
    return Chart(
        equal_width_chart(bins, alternative),
        caption,
        bins_table(f"{run.label}: the 15 equal-width bins", bins, intervals=True),
    )


def _equal_mass(run: ReportedRun, ticks: Sequence[int]) -> Chart:
    bins, figures = reliability_of(run.clean).mass15, run.clean.ensemble
    caption = (
        f"Equal-mass bins: ECE {with_sign(figures.ece_mass15)}, ECE-rms {with_sign(figures.ece_rms_mass15)}. "
        "Images in order of confidence, about the same number in each step; the shaded area is the ECE."
    )
    alternative = f"Reliability diagram of {run.label} with equal-mass bins. {bins_in_words(bins)}"
    return Chart(
        equal_mass_chart(bins, ticks, alternative),
        caption,
        bins_table(f"{run.label}: the 15 equal-mass bins", bins, intervals=True),
    )


SECTION = Section("reliability", _TITLE, reliability, "sections/reliability.html")
