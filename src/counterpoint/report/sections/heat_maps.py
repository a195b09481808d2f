"""Every cell of every suite: for each metric one table per run, each cell with its place on a scale."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.run import ReportedRun, Scores, whole_scores
from counterpoint.report.section import Block, Content, Panel, Section
from counterpoint.report.suites import ShiftedRun, by_suite, corruption_label, named_severities
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
class SuiteMaps:
    """One metric of all runs on a suite on one scale, so that colours can be compared."""

    deepest: str  # the value that has the deepest colour
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class HeatMap(Panel):
    """One metric."""

    unit: str
    sign_means: str  # empty where no value is below zero
    suites: tuple[SuiteMaps, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        return tuple(table for suite in self.suites for table in suite.tables)


@dataclass(frozen=True)
class HeatMaps(Content):
    maps: tuple[HeatMap, ...]

    @property
    def panels(self) -> Sequence[Panel]:
        return self.maps

    def blocks(self) -> Iterator[Block]:
        yield Block("Corruption by corruption", tuple(table for heat_map in self.maps for table in heat_map.tables))


@dataclass(frozen=True)
class _Grid:
    """The ensemble's scores in each cell of one run on one suite."""

    shifted: ShiftedRun
    scores: dict[str, list[Scores]]

    def values(self, key: str) -> Values | None:
        """One metric; None where a cell lacks it."""
        found = {name: [scores.get(key) for scores in row] for name, row in self.scores.items()}
        known = {name: [value for value in row if value is not None] for name, row in found.items()}
        return known if known == found else None


def heat_maps(runs: Sequence[ReportedRun]) -> HeatMaps | None:
    """One for each metric that some run has; None where no run was evaluated under shift."""
    suites = [[_grid(shifted) for shifted in group] for group in _on_one_scale([*by_suite(runs).values()])]
    maps = tuple(heat_map for key in _SHOWN if (heat_map := _heat_map(key, suites)).suites)
    return HeatMaps(maps) if maps else None


def _on_one_scale(suites: Sequence[list[ShiftedRun]]) -> list[list[ShiftedRun]]:
    """A user's own shifts, of which each has few cells, have their colours beside those of the paper's suite."""
    beside = [shifted for group in suites if group[0].is_papers or group[0].is_own for shifted in group]
    others = [group for group in suites if not (group[0].is_papers or group[0].is_own)]
    return [beside, *others] if beside else others


def _grid(shifted: ShiftedRun) -> _Grid:
    return _Grid(shifted, {name: [*map(whole_scores, row)] for name, row in shifted.figures.cells.items()})


def _heat_map(key: str, suites: Sequence[Sequence[_Grid]]) -> HeatMap:
    column = _COLUMNS[key]
    found = [[(grid.shifted, values) for grid in grids if (values := grid.values(key))] for grids in suites]
    return HeatMap(
        key=f"map-{key.replace('_', '-')}",
        label=column.label,
        unit=column.unit,
        sign_means=_SIGNED.get(key, ""),
        suites=tuple(_suite_maps(f"{column.label}, {column.unit}", _SHOWN[key], having) for having in found if having),
    )


def _suite_maps(metric: str, show: Show, found: Sequence[tuple[ShiftedRun, Values]]) -> SuiteMaps:
    deepest = max(abs(value) for _, values in found for row in values.values() for value in row)
    return SuiteMaps(
        deepest=show(deepest).lstrip("+"),
        tables=tuple(_table(f"{shifted.label}: {metric}", shifted, values, show, deepest) for shifted, values in found),
    )


def _columns(shifted: ShiftedRun) -> tuple[Column, ...]:
    if not shifted.has_severities:
        return Column("Shift"), Column(*named_severities(shifted))
    return Column("Severity"), *(Column(str(number)) for number in shifted.figures.severities)


def _table(caption: str, shifted: ShiftedRun, values: Values, show: Show, deepest: float) -> Table:
    means = [sum(column) / len(column) for column in zip(*values.values(), strict=True)]
    labels = {name: name if shifted.is_own else corruption_label(name) for name in values}
    rows = [Row(labels[name], _entries(row, show, deepest)) for name, row in values.items()]
    if len(rows) > 1:
        rows.append(Row(f"Mean of {len(rows)}", _entries(means, show, deepest), "mean"))
    return Table(caption, _columns(shifted), tuple(rows))


def _entries(values: Iterable[float], show: Show, deepest: float) -> tuple[Entry, ...]:
    return tuple(Entry(show(value), heat=round(100 * value / deepest) if deepest else 0) for value in values)


SECTION = Section("heat-maps", "Heat maps", heat_maps, "sections/heat_maps.html")
