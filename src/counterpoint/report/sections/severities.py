"""Accuracy and confidence at each severity, of each run on each suite."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.bins import binned_ece, bins_in_words, bins_table
from counterpoint.report.drawing.calibration import severity_chart, small_equal_width_chart
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.strokes import percent_ticks
from counterpoint.report.run import ReportedRun
from counterpoint.report.section import Block, Content, Section
from counterpoint.report.severities import Severity, severities, severity_table
from counterpoint.report.suites import ShiftedRun, by_suite, counted
from counterpoint.report.tables import with_sign


@dataclass(frozen=True)
class RunSeverities:
    """One run on one suite, at each severity."""

    label: str
    severity: Chart | None  # None where there is one severity and nothing to set beside it
    note: str
    bins: str  # what the numbers behind the diagrams are called
    reliability: tuple[Chart, ...]


@dataclass(frozen=True)
class Severities(Content):
    runs: tuple[RunSeverities, ...]

    def blocks(self) -> Iterator[Block]:
        tables = tuple(run.severity.table for run in self.runs if run.severity)
        if tables:
            yield Block("Accuracy and confidence against severity", tables)


def against_severity(runs: Sequence[ReportedRun]) -> Severities | None:
    """None where no run was evaluated under shift. The y axis is the same for all runs of a page."""
    points = [(shifted, severities(shifted)) for group in by_suite(runs).values() for shifted in group]
    if not points:
        return None
    ticks = percent_ticks(min(_lowest(point) for _, of_run in points for point in of_run))
    return Severities(tuple(_run_severities(shifted, of_run, ticks) for shifted, of_run in points))


def _lowest(point: Severity) -> float:
    return min(min(rates.accuracy, rates.confidence) for rates in (point.ensemble, *point.members))


def _run_severities(shifted: ShiftedRun, points: Sequence[Severity], ticks: Sequence[int]) -> RunSeverities:
    return RunSeverities(
        label=shifted.label,
        severity=_severity(shifted, points, ticks) if len(points) > 1 else None,
        note=_note(shifted),
        bins="the bins of each severity" if shifted.has_severities else "the bins",
        reliability=tuple(_reliability(shifted, point) for point in points),
    )


def _note(shifted: ShiftedRun) -> str:
    on, images = shifted.run.results.evaluated_on, shifted.figures.images
    if shifted.clean_is_severity_0:
        return f"Clean is the same {images:,} images without corruption."
    if not shifted.is_ours:
        return "There is no clean point: how sure the model is of these images without the shift is not known."
    return (
        f"There is no clean point: the clean figures are of {on.images:,} {on.part} images, and the corrupted "
        f"ones of {images:,} {shifted.figures.part} images."
    )


def _severity(shifted: ShiftedRun, points: Sequence[Severity], ticks: Sequence[int]) -> Chart:
    first, last = points[0], points[-1]
    words = (
        f"from {first.name.lower()} to {last.name.lower()} accuracy goes from {with_sign(first.ensemble.accuracy)} to "
        f"{with_sign(last.ensemble.accuracy)} and mean confidence from {with_sign(first.ensemble.confidence)} to "
        f"{with_sign(last.ensemble.confidence)}."
    )
    return Chart(
        severity_chart(points, ticks, f"Accuracy and mean confidence of {shifted.label} against severity: {words}"),
        f"{_mean_of(shifted)}{words}",
        severity_table(f"{shifted.label}: accuracy and confidence at each severity", points),
    )


def _mean_of(shifted: ShiftedRun) -> str:
    return "All images: " if shifted.is_own else f"Mean of the {counted(len(shifted.figures.cells), 'corruption')}: "


def _reliability(shifted: ShiftedRun, point: Severity) -> Chart:
    alternative = f"Reliability diagram of {shifted.label}, {point.name.lower()}, with equal-width bins. "
    return Chart(
        small_equal_width_chart(point.bins, alternative + bins_in_words(point.bins)),
        f"{point.name}: ECE {with_sign(binned_ece(point.bins))}",
        bins_table(f"{shifted.label}, {point.name.lower()}: the 15 equal-width bins", point.bins, intervals=False),
    )


SECTION = Section("severities", "Severity", against_severity, "sections/severities.html")
