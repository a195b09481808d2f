"""What the page says about runs under shift."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.report.drawing import percent_ticks
from counterpoint.report.figures import severity_figure, small_equal_width_figure
from counterpoint.report.heatmaps import HeatMap, heat_maps
from counterpoint.report.run import AGGREGATES, Run
from counterpoint.report.shift import Severity, binned_ece, severities, severity_table
from counterpoint.report.tables import Table, bins_table, shift_tables, with_sign
from counterpoint.report.views import Figure, bins_in_words


@dataclass(frozen=True)
class RunShiftView:
    """One run at each severity."""

    label: str
    severity: Figure
    note: str
    reliability: tuple[Figure, ...]


@dataclass(frozen=True)
class ShiftView:
    """All runs under shift, ready for the template."""

    sources: tuple[str, ...]
    is_regenerated: bool
    headline: str
    headline_tables: tuple[Table, ...]
    other_tables: tuple[Table, ...]
    runs: tuple[RunShiftView, ...]
    heat_maps: tuple[HeatMap, ...]


def shift_view(runs: Sequence[Run]) -> ShiftView | None:
    """None where no run was evaluated under shift."""
    shifted = [run for run in runs if run.is_corrupted]
    if not shifted:
        return None
    points = {run.label: severities(run) for run in shifted}
    ticks = percent_ticks(min(_lowest(point) for of_run in points.values() for point in of_run))
    tables = shift_tables(shifted)
    return ShiftView(
        sources=_sources(runs),
        is_regenerated=any(run.corrupted["source"]["kind"] == "regenerated" for run in shifted),
        headline=AGGREGATES[0],
        headline_tables=tuple(tables[AGGREGATES[0]]),
        other_tables=tuple(table for way in AGGREGATES[1:] for table in tables[way]),
        runs=tuple(_run_view(run, points[run.label], ticks) for run in shifted),
        heat_maps=tuple(heat_maps(shifted)),
    )


def _sources(runs: Sequence[Run]) -> tuple[str, ...]:
    """Where each corrupted set comes from, and which runs were evaluated on it."""
    labels: dict[str, list[str]] = {}
    for run in runs:
        labels.setdefault(run.corrupted_images if run.is_corrupted else "not evaluated", []).append(run.label)
    return tuple(f"{' and '.join(some)}: {images}" for images, some in labels.items())


def _lowest(point: Severity) -> float:
    return min(min(rates.accuracy, rates.confidence) for rates in (point.ensemble, *point.members))


def _run_view(run: Run, points: Sequence[Severity], ticks: Sequence[int]) -> RunShiftView:
    return RunShiftView(
        label=run.label,
        severity=_severity(run, points, ticks),
        note=_note(run),
        reliability=tuple(_reliability(run, point) for point in points),
    )


def _note(run: Run) -> str:
    on, images = run.results["evaluated_on"], run.corrupted["images"]
    if run.clean_is_severity_0:
        return f"Clean is the same {images:,} images without corruption."
    return (
        f"There is no clean point: the clean figures are of {on['images']:,} {on['part']} images, and the corrupted "
        f"ones of {images:,} test images."
    )


def _severity(run: Run, points: Sequence[Severity], ticks: Sequence[int]) -> Figure:
    first, last = points[0], points[-1]
    words = (
        f"from {first.name.lower()} to {last.name.lower()} accuracy goes from {with_sign(first.ensemble.accuracy)} to "
        f"{with_sign(last.ensemble.accuracy)} and mean confidence from {with_sign(first.ensemble.confidence)} to "
        f"{with_sign(last.ensemble.confidence)}."
    )
    return Figure(
        severity_figure(points, ticks, f"Accuracy and mean confidence of {run.label} against severity: {words}"),
        f"Mean of the 15 corruptions: {words}",
        severity_table(f"{run.label}: accuracy and confidence at each severity", points),
    )


def _reliability(run: Run, point: Severity) -> Figure:
    alternative = f"Reliability diagram of {run.label}, {point.name.lower()}, with equal-width bins. "
    return Figure(
        small_equal_width_figure(point.bins, alternative + bins_in_words(point.bins)),
        f"{point.name}: ECE {with_sign(binned_ece(point.bins))}",
        bins_table(f"{run.label}, {point.name.lower()}: the 15 equal-width bins", point.bins, intervals=False),
    )
