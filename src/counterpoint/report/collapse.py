"""Do the members differ? Their predictions and factors against independent members and identical ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterpoint.report.curves import disagreement_figure
from counterpoint.report.drawing import ticks_from_zero
from counterpoint.report.run import SEVERITIES, Run
from counterpoint.report.tables import Cell, Column, Row, Table, decimal, percent, with_sign
from counterpoint.report.views import Figure

_COLUMNS = (
    Column("Images"),
    Column("Disagree", "%"),
    Column("If independent", "%"),
    Column("Share of that", "%"),
    Column("KL", "nats"),
)

Between = Mapping[str, float]


@dataclass(frozen=True)
class Collapse:
    """How much one run's members differ, ready for the template."""

    label: str
    verdict: str
    figure: Figure
    factors: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.figure.table, *([self.factors] if self.factors else []))


def collapses(runs: Sequence[Run]) -> tuple[Collapse, ...]:
    return tuple(_collapse(run, run.results["collapse"]) for run in runs if run.results.get("collapse"))


def _collapse(run: Run, found: Mapping[str, Any]) -> Collapse:
    factors = {name: found[name] for name in ("r", "s") if found.get(name)}
    return Collapse(
        label=run.label,
        verdict=found["verdict"],
        figure=_figure(run, found["clean"], found.get("severities") or []),
        factors=_factors_table(run.label, factors) if factors else None,
    )


def _figure(run: Run, clean: Between, by_severity: Sequence[Between]) -> Figure:
    severities = {f"Severity {number}": one for number, one in zip(SEVERITIES, by_severity, strict=False)}
    points = {"Clean": clean, **severities}
    joined = points if not severities or run.clean_is_severity_0 else severities
    highest = max(max(one["disagreement"], one["independent_disagreement"]) for one in joined.values())
    words = [
        f"{name.lower()}: {with_sign(one['disagreement'])}, if independent {with_sign(one['independent_disagreement'])}"
        for name, one in points.items()
    ]
    ends = "; ".join(dict.fromkeys((words[0], words[-1])))
    return Figure(
        disagreement_figure(
            joined, ticks_from_zero(highest), f"How often two members of {run.label} disagree: {'; '.join(words)}."
        ),
        f"How often two members disagree. {ends.capitalize()}.",
        Table(
            f"{run.label}: two members compared",
            _COLUMNS,
            tuple(Row(name, _cells(one)) for name, one in points.items()),
        ),
    )


def _cells(one: Between) -> tuple[Cell, ...]:
    independent = one["independent_disagreement"]
    share = f"{100 * one['disagreement'] / independent:.0f}" if independent > 0 else "–"
    return (
        Cell(percent(one["disagreement"])),
        Cell(percent(independent)),
        Cell(share),
        Cell(decimal(one["pairwise_kl"])),
    )


def _factors_table(label: str, factors: Mapping[str, Between]) -> Table:
    rows = []
    for name, one in factors.items():
        rows.append(Row(f"{name}, all pairs", _factor_cells(one["plain"], 0.0)))
        rows.append(Row(f"{name}, closest pair", _factor_cells(one["closest"], one["independent"])))
    columns = (Column("Factors"), Column("Here"), Column("Independent", "about"), Column("Identical"))
    return Table(f"{label}: correlation of the members’ factors", columns, tuple(rows))


def _factor_cells(here: float, independent: float) -> tuple[Cell, ...]:
    return Cell(_correlation(here)), Cell(_correlation(independent)), Cell(_correlation(1.0))


def _correlation(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")
