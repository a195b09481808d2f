"""This run less another on the same images, as `counterpoint evaluate RUN --against OTHER` computed it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.rows import Difference, differences_chart
from counterpoint.report.run import SEVERITIES, ReportedRun
from counterpoint.report.tables import BY_KEY, Column, Entry, Row, Table, decimal, signed, signed_decimal

_COLUMNS = (Column("Metric"), Column("Difference"), Column("Interval", "95 %, over images"), Column("This run is"))
_DEBIASED = "_debiased"  # calibration errors are compared by their debiased estimates
_VERDICTS = {"lower": "lower", "higher": "higher", "unclear": "not told apart"}
_SENTENCES = {
    "lower": "lower in {} (0 is outside the interval)",
    "higher": "higher in {} (0 is outside the interval)",
    "unclear": "not told from the other in {} (0 is inside the interval)",
}


@dataclass(frozen=True)
class Comparison:
    """One run against another, ready for the template."""

    label: str
    words: tuple[str, ...]
    charts: tuple[Chart, ...]
    severities: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (*(chart.table for chart in self.charts), *([self.severities] if self.severities else []))


def comparisons(runs: Sequence[ReportedRun]) -> tuple[Comparison, ...]:
    return tuple(_comparison(run, other) for run in runs for other in run.results.get("against") or [])


def _comparison(run: ReportedRun, other: Mapping[str, Any]) -> Comparison:
    label = f"{run.label} − {other['experiment']}, seed {other['seed']}"
    corrupted = other.get("corrupted")
    sets = {"clean images": other.get("clean")}
    if corrupted:
        sets["corrupted images (each image’s mean over the 75 cells)"] = corrupted["mean"]
        sets["corrupted images, by corruption (each image with all its cells)"] = corrupted.get("by_corruption")
    found = {images: _differences(values) for images, values in sets.items() if values}
    return Comparison(
        label=label,
        words=tuple(f"On {images} this run is {_in_words(rows)}." for images, rows in found.items()),
        charts=tuple(_chart(label, images, rows) for images, rows in found.items()),
        severities=_severities(label, corrupted["severities"]) if corrupted else None,
    )


def _differences(values: Mapping[str, Mapping[str, float]]) -> list[Difference]:
    return [_difference(key, found) for key, found in values.items() if key.removesuffix(_DEBIASED) in BY_KEY]


def _difference(key: str, found: Mapping[str, float]) -> Difference:
    metric = BY_KEY[key.removesuffix(_DEBIASED)]
    show, unit = (signed_decimal, " nats" if key == "nll" else "") if metric.show is decimal else (signed, " points")
    binning = metric.column.unit.removesuffix(", %") if metric.key.startswith("ece") else ""
    return Difference(
        label=f"{metric.column.label} ({binning}, debiased)" if binning else metric.column.label,
        value=found["difference"],
        low=found["low"],
        high=found["high"],
        shown=f"{show(found['difference'])}{unit}",
        interval=f"{show(found['low'])} to {show(found['high'])}",
    )


def _in_words(rows: Sequence[Difference]) -> str:
    by_verdict = {verdict: [row.label for row in rows if row.verdict == verdict] for verdict in _SENTENCES}
    return "; ".join(_SENTENCES[verdict].format(", ".join(labels)) for verdict, labels in by_verdict.items() if labels)


def _chart(label: str, images: str, rows: Sequence[Difference]) -> Chart:
    alternative = f"Differences on {images}, {label}: {'; '.join(row.words for row in rows)}."
    table = Table(f"{label}: {images}", _COLUMNS, tuple(Row(row.label, _entries(row)) for row in rows))
    return Chart(differences_chart(rows, alternative), f"On {images}. Each row has its own scale.", table)


def _entries(row: Difference) -> tuple[Entry, ...]:
    return Entry(row.shown), Entry(row.interval), Entry(_VERDICTS[row.verdict])


def _severities(label: str, by_severity: Sequence[Mapping[str, Mapping[str, float]]]) -> Table:
    rows = [
        Row(f"Severity {number}: {row.label}", _entries(row))
        for number, values in zip(SEVERITIES, by_severity, strict=True)
        for row in _differences(values)
    ]
    return Table(f"{label}: at each severity (each image’s mean over the 15 corruptions)", _COLUMNS, tuple(rows))
