"""Runs under shift: all metrics, accuracy and confidence at each severity, and heat maps."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.report.bins import binned_ece, bins_in_words, bins_table
from counterpoint.report.drawing.calibration import severity_chart, small_equal_width_chart
from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.heatmaps import HeatMap, heat_maps
from counterpoint.report.drawing.strokes import percent_ticks
from counterpoint.report.run import AGGREGATES, ReportedRun
from counterpoint.report.severities import Severity, severities, severity_table
from counterpoint.report.tables import Table, by_corrupted_images, metrics_table, with_sign


@dataclass(frozen=True)
class RunUnderShift:
    """One run at each severity."""

    label: str
    severity: Chart
    note: str
    reliability: tuple[Chart, ...]


@dataclass(frozen=True)
class UnderShift:
    """All runs under shift, ready for the template."""

    sources: tuple[str, ...]
    is_regenerated: bool
    headline: str
    headline_tables: tuple[Table, ...]
    other_tables: tuple[Table, ...]
    runs: tuple[RunUnderShift, ...]
    heat_maps: tuple[HeatMap, ...]


def under_shift(runs: Sequence[ReportedRun]) -> UnderShift | None:
    """None where no run was evaluated under shift."""
    shifted = [run for run in runs if run.is_corrupted]
    if not shifted:
        return None
    points = {run.label: severities(run) for run in shifted}
    ticks = percent_ticks(min(_lowest(point) for of_run in points.values() for point in of_run))
    tables = shift_tables(shifted)
    return UnderShift(
        sources=_sources(runs),
        is_regenerated=any(run.corrupted["source"]["kind"] == "regenerated" for run in shifted),
        headline=AGGREGATES[0],
        headline_tables=tuple(tables[AGGREGATES[0]]),
        other_tables=tuple(table for aggregate in AGGREGATES[1:] for table in tables[aggregate]),
        runs=tuple(_run_under_shift(run, points[run.label], ticks) for run in shifted),
        heat_maps=tuple(heat_maps(shifted)),
    )


def shift_tables(runs: Sequence[ReportedRun]) -> dict[str, list[Table]]:
    """For each aggregate over the cells, one table for each corrupted set."""
    return {
        aggregate: [
            metrics_table(f"All metrics on {images}: {aggregate}", [(run, run.aggregate(aggregate)) for run in group])
            for images, group in by_corrupted_images(runs).items()
        ]
        for aggregate in AGGREGATES
    }


def _sources(runs: Sequence[ReportedRun]) -> tuple[str, ...]:
    """Where each corrupted set comes from, and which runs were evaluated on it."""
    labels: dict[str, list[str]] = {}
    for run in runs:
        labels.setdefault(run.corrupted_images if run.is_corrupted else "not evaluated", []).append(run.label)
    return tuple(f"{' and '.join(of_images)}: {images}" for images, of_images in labels.items())


def _lowest(point: Severity) -> float:
    return min(min(rates.accuracy, rates.confidence) for rates in (point.ensemble, *point.members))


def _run_under_shift(run: ReportedRun, points: Sequence[Severity], ticks: Sequence[int]) -> RunUnderShift:
    return RunUnderShift(
        label=run.label,
        severity=_severity(run, points, ticks),
        note=_note(run),
        reliability=tuple(_reliability(run, point) for point in points),
    )


def _note(run: ReportedRun) -> str:
    on, images = run.results["evaluated_on"], run.corrupted["images"]
    if run.clean_is_severity_0:
        return f"Clean is the same {images:,} images without corruption."
    return (
        f"There is no clean point: the clean figures are of {on['images']:,} {on['part']} images, and the corrupted "
        f"ones of {images:,} test images."
    )


def _severity(run: ReportedRun, points: Sequence[Severity], ticks: Sequence[int]) -> Chart:
    first, last = points[0], points[-1]
    words = (
        f"from {first.name.lower()} to {last.name.lower()} accuracy goes from {with_sign(first.ensemble.accuracy)} to "
        f"{with_sign(last.ensemble.accuracy)} and mean confidence from {with_sign(first.ensemble.confidence)} to "
        f"{with_sign(last.ensemble.confidence)}."
    )
    return Chart(
        severity_chart(points, ticks, f"Accuracy and mean confidence of {run.label} against severity: {words}"),
        f"Mean of the 15 corruptions: {words}",
        severity_table(f"{run.label}: accuracy and confidence at each severity", points),
    )


def _reliability(run: ReportedRun, point: Severity) -> Chart:
    alternative = f"Reliability diagram of {run.label}, {point.name.lower()}, with equal-width bins. "
    return Chart(
        small_equal_width_chart(point.bins, alternative + bins_in_words(point.bins)),
        f"{point.name}: ECE {with_sign(binned_ece(point.bins))}",
        bins_table(f"{run.label}, {point.name.lower()}: the 15 equal-width bins", point.bins, intervals=False),
    )
