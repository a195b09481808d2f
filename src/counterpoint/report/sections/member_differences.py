"""Do the members differ? Their predictions and factors against independent members and identical ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.drawing.chart import Chart
from counterpoint.report.drawing.curves import disagreement_chart
from counterpoint.report.drawing.strokes import ticks_from_zero
from counterpoint.report.run import SEVERITIES, ReportedRun
from counterpoint.report.tables import Column, Entry, Row, Table, decimal, percent, with_sign

_COLUMNS = (
    Column("Images"),
    Column("Disagree", "%"),
    Column("If independent", "%"),
    Column("Share of that", "%"),
    Column("KL", "nats"),
)

Between = Mapping[str, float]


@dataclass(frozen=True)
class MemberDifferences:
    """How much one run's members differ, ready for the template."""

    label: str
    verdict: str
    chart: Chart
    factors: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.chart.table, *([self.factors] if self.factors else []))


def member_differences(runs: Sequence[ReportedRun]) -> tuple[MemberDifferences, ...]:
    return tuple(_member_differences(run, run.results["collapse"]) for run in runs if run.results.get("collapse"))


def _member_differences(run: ReportedRun, found: Mapping[str, Any]) -> MemberDifferences:
    factors = {name: found[name] for name in ("r", "s") if found.get(name)}
    return MemberDifferences(
        label=run.label,
        verdict=found["verdict"],
        chart=_chart(run, found["clean"], found.get("severities") or []),
        factors=_factors_table(run.label, factors) if factors else None,
    )


def _chart(run: ReportedRun, clean: Between, by_severity: Sequence[Between]) -> Chart:
    severities = {f"Severity {number}": between for number, between in zip(SEVERITIES, by_severity, strict=False)}
    points = {"Clean": clean, **severities}
    joined = points if not severities or run.clean_is_severity_0 else severities
    highest = max(max(between["disagreement"], between["independent_disagreement"]) for between in joined.values())
    words = [
        f"{name.lower()}: {with_sign(between['disagreement'])}, "
        f"if independent {with_sign(between['independent_disagreement'])}"
        for name, between in points.items()
    ]
    ends = "; ".join(dict.fromkeys((words[0], words[-1])))
    return Chart(
        disagreement_chart(
            joined, ticks_from_zero(highest), f"How often two members of {run.label} disagree: {'; '.join(words)}."
        ),
        f"How often two members disagree. {ends.capitalize()}.",
        Table(
            f"{run.label}: two members compared",
            _COLUMNS,
            tuple(Row(name, _entries(between)) for name, between in points.items()),
        ),
    )


def _entries(between: Between) -> tuple[Entry, ...]:
    independent = between["independent_disagreement"]
    share = f"{100 * between['disagreement'] / independent:.0f}" if independent > 0 else "–"
    return (
        Entry(percent(between["disagreement"])),
        Entry(percent(independent)),
        Entry(share),
        Entry(decimal(between["pairwise_kl"])),
    )


def _factors_table(label: str, factors: Mapping[str, Between]) -> Table:
    rows = []
    for name, correlation in factors.items():
        rows.append(Row(f"{name}, all pairs", _factor_entries(correlation["plain"], 0.0)))
        rows.append(Row(f"{name}, closest pair", _factor_entries(correlation["closest"], correlation["independent"])))
    columns = (Column("Factors"), Column("Here"), Column("Independent", "about"), Column("Identical"))
    return Table(f"{label}: correlation of the members’ factors", columns, tuple(rows))


def _factor_entries(here: float, independent: float) -> tuple[Entry, ...]:
    return Entry(_correlation(here)), Entry(_correlation(independent)), Entry(_correlation(1.0))


def _correlation(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
