"""All runs on one axis: the ECE at each severity, with and without recalibration."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.bins import binned_ece
from counterpoint.report.drawing.chart import Plot
from counterpoint.report.drawing.plots import Axes, series_chart
from counterpoint.report.drawing.series import Look, Point, Series, ink_of, legend, reach
from counterpoint.report.drawing.strokes import ticks_from_zero
from counterpoint.report.recalibrations.under_shift import compared_ways
from counterpoint.report.recalibrations.words import is_ensemble, quoted
from counterpoint.report.run import ReportedRun
from counterpoint.report.severities import RunSeverities, severities
from counterpoint.report.severity_plots import severity_places, severity_ticks
from counterpoint.report.suites import by_cells, papers_suites
from counterpoint.report.tables import Column, Entry, Row, Table, or_dash, percent, with_sign

_WITHOUT = "without recalibration"


@dataclass(frozen=True)
class _Way:
    """The ECE of one run at each severity, with a recalibration or without."""

    run: ReportedRun
    name: str
    look: Look
    errors: dict[str, float]


def recalibrations_together(runs: Sequence[ReportedRun]) -> tuple[Plot, ...]:
    """A plot for each set of images on which several runs were evaluated, one of them recalibrated."""
    plots = []
    for images, group in by_cells(one for one in papers_suites(runs) if one.has_severities):
        of_runs = [RunSeverities(one, severities(one)) for one in group]
        ways = [way for run in of_runs for way in _ways(run)]
        if len(of_runs) > 1 and len(ways) > len(of_runs):
            plots.append(_plot(images, of_runs, ways))
    return tuple(plots)


def _ways(run: RunSeverities) -> list[_Way]:
    reported, found = run.shifted.run, run.shifted.run.evaluated.recalibrated
    without = _Way(reported, _WITHOUT, "dashed", {point.name: binned_ece(point.bins) for point in run.points})
    recalibrated = _recalibrated(run, found) if found else None
    return [without, recalibrated] if recalibrated else [without]


def _recalibrated(run: RunSeverities, found: Recalibrated) -> _Way | None:
    """With the chosen one, or without a choice with a temperature of clean images."""
    way = compared_ways(found)[-1]
    scaled = found.ways[way]
    if scaled.corrupted is None:
        return None
    by_severity = [figures.ece_width15 for figures in scaled.corrupted.severities]
    clean = [scaled.clean.ensemble.ece_width15] if len(run.points) > len(by_severity) else []
    errors = dict(zip([point.name for point in run.points], [*clean, *by_severity], strict=True))
    return _Way(run.shifted.run, f"with {quoted(way, is_ensemble(found))}", "solid", errors)


def _plot(images: str, runs: Sequence[RunSeverities], ways: Sequence[_Way]) -> Plot:
    places = severity_places(runs)
    series = [_series(way, places) for way in ways]
    axes = Axes(severity_ticks(places), "corruption severity", ticks_from_zero(reach(series, max)), "ECE, %")
    words = "; ".join(f"{way.run.label}, {way.name}: {_ends(way)}" for way in ways)
    how = [f"{way.run.label} {way.name}" for way in ways if way.look == "solid"]
    return Plot(
        series_chart("recalibrated", axes, series, f"ECE against severity, with and without recalibration. {words}."),
        legend([run.shifted.run for run in runs], {"dashed": _WITHOUT, "solid": "recalibrated"}),
        f"ECE in 15 equal-width bins, {images}. Recalibrated means: {', '.join(how)}.",
        (_table(images, list(places), ways),),
    )


def _series(way: _Way, places: dict[str, float]) -> Series:
    points = [
        Point(places[name], error, f"{name}\n{way.name}\nECE {with_sign(error)}") for name, error in way.errors.items()
    ]
    return Series(ink_of(way.run), points, way.look)


def _ends(way: _Way) -> str:
    said = [f"{name.lower()} {with_sign(error)}" for name, error in way.errors.items()]
    return ", ".join(dict.fromkeys((said[0], said[-1])))


def _table(images: str, names: Sequence[str], ways: Sequence[_Way]) -> Table:
    rows = [Row(name, tuple(Entry(or_dash(percent, way.errors.get(name))) for way in ways)) for name in names]
    columns = [Column(way.run.label, f"{way.name}, %") for way in ways]
    return Table(f"ECE with and without recalibration: {images}", (Column("Severity"), *columns), tuple(rows))
