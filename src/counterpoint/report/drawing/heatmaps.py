"""The grid of 15 corruptions × 5 severities: for each metric one table per run, each cell with its place on a scale."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from counterpoint.report.run import CORRUPTIONS, SEVERITIES, ReportedRun, Summary, models
from counterpoint.report.tables import METRICS, Column, Entry, Row, Table, signed

Show = Callable[[float], str]
Values = dict[str, list[float]]
"""For each corruption, the ensemble's metric at each severity."""

# One digit fewer than in the other tables, so that six columns fit on a phone.
_SHOWN: dict[str, Show] = {
    "error": lambda value: f"{100 * value:.1f}",
    "ece_width15": lambda value: f"{100 * value:.1f}",
    "ece_rms_width15": lambda value: f"{100 * value:.1f}",
    "nll": lambda value: f"{value:.2f}",
    "brier": lambda value: f"{value:.2f}",
    "overconfidence": lambda value: signed(value, digits=1),
    "ece_width15_excess": lambda value: signed(value, digits=1),
    "disagreement": lambda value: f"{100 * value:.1f}",
    "pairwise_kl": lambda value: f"{value:.2f}",
}
_COLUMNS = {metric.key: metric.column for metric in METRICS} | {
    "ece_width15_excess": Column("ECE excess", "equal-width 15, points")
}
_SIGNED = {
    "overconfidence": "above zero: over-confident",
    "ece_width15_excess": "above zero: more than noise would show",
}


@dataclass(frozen=True)
class HeatMap:
    """One metric of all runs on one scale, so that colours can be compared."""

    key: str
    label: str
    unit: str
    sign_means: str  # empty where no value is below zero
    deepest: str  # the value that has the deepest colour
    tables: tuple[Table, ...]


def heat_maps(runs: Sequence[ReportedRun]) -> list[HeatMap]:
    """One for each metric that some run has."""
    of_metric = {key: [run for run in runs if _has(run, key)] for key in _SHOWN}
    return [_heat_map(key, having) for key, having in of_metric.items() if having]


def _heat_map(key: str, runs: Sequence[ReportedRun]) -> HeatMap:
    column, show = _COLUMNS[key], _SHOWN[key]
    grids = [_values(run, key) for run in runs]
    deepest = max(abs(value) for grid in grids for row in grid.values() for value in row)
    return HeatMap(
        key=f"map-{key.replace('_', '-')}",
        label=column.label,
        unit=column.unit,
        sign_means=_SIGNED.get(key, ""),
        deepest=show(deepest).lstrip("+"),
        tables=tuple(
            _table(f"{run.label}: {column.label}, {column.unit}", grid, show, deepest)
            for run, grid in zip(runs, grids, strict=True)
        ),
    )


def _has(run: ReportedRun, key: str) -> bool:
    cells = (cell for name in CORRUPTIONS for cell in run.corrupted["cells"][name])
    return all(next(models(cell))[1].get(key) is not None for cell in cells)


def _values(run: ReportedRun, key: str) -> Values:
    cells = run.corrupted["cells"]
    return {name: [_ensemble_score(cell, key) for cell in cells[name]] for name in CORRUPTIONS}


def _ensemble_score(cell: Summary, key: str) -> float:
    _, scores = next(models(cell))
    value = scores[key]
    assert value is not None
    return value


def _table(caption: str, grid: Values, show: Show, deepest: float) -> Table:
    means = [sum(column) / len(column) for column in zip(*grid.values(), strict=True)]
    rows = [Row(CORRUPTIONS[name], _entries(values, show, deepest)) for name, values in grid.items()]
    rows.append(Row(f"Mean of {len(grid)}", _entries(means, show, deepest), "mean"))
    return Table(caption, (Column("Severity"), *(Column(str(number)) for number in SEVERITIES)), tuple(rows))


def _entries(values: Iterable[float], show: Show, deepest: float) -> tuple[Entry, ...]:
    return tuple(Entry(show(value), heat=round(100 * value / deepest) if deepest else 0) for value in values)
