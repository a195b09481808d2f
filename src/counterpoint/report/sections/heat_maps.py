"""Every cell of every suite: for each metric one table per run, each cell with its place on a scale."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from counterpoint.report.run import ReportedRun, Scores, whole_scores
from counterpoint.report.section import Block, Content, Panel, Section
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, corruption_label, is_folded, named_severities
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

    deepest: str  # the value that has the deepest colour, a round number
    tables: tuple[Table, ...]
    title: str = ""
    is_folded: bool = False
    difference: "SuiteMaps | None" = None  # of two runs, on a scale of its own


@dataclass(frozen=True)
class HeatMap(Panel):
    """One metric."""

    unit: str
    sign_means: str  # empty where no value is below zero
    suites: tuple[SuiteMaps, ...]

    @property
    def tables(self) -> tuple[Table, ...]:
        scales = [one for suite in self.suites for one in (suite, suite.difference) if one]
        return tuple(table for one in scales for table in one.tables)


@dataclass(frozen=True)
class HeatMaps(Content):
    maps: tuple[HeatMap, ...]

    @property
    def panels(self) -> Sequence[Panel]:
        return self.maps

    @property
    def has_differences(self) -> bool:
        return any(suite.difference for heat_map in self.maps for suite in heat_map.suites)

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
    every = [grid.shifted for grids in suites for grid in grids]
    return HeatMap(
        key=f"map-{key.replace('_', '-')}",
        label=column.label,
        unit=column.unit,
        sign_means=_SIGNED.get(key, ""),
        suites=tuple(
            replace(
                _suite_maps(column, _SHOWN[key], having),
                title=grids[0].shifted.kind,
                is_folded=is_folded(grids[0].shifted, every),
                difference=_difference(key, grids),
            )
            for having, grids in zip(found, suites, strict=True)
            if having
        ),
    )


def _suite_maps(column: Column, show: Show, found: Sequence[tuple[ShiftedRun, Values]]) -> SuiteMaps:
    of_percent = 100.0 if "%" in column.unit or "points" in column.unit else 1.0
    values = [value for _, of_run in found for row in of_run.values() for value in row]
    deepest = _round_up(of_percent * max(map(abs, values))) / of_percent
    tables = [_table(_caption(shifted, column), shifted, of_run, _scaled(show, deepest)) for shifted, of_run in found]
    return SuiteMaps(f"{of_percent * deepest:g}", tuple(tables))


def _caption(shifted: ShiftedRun, column: Column) -> str:
    """With the number of images, since suites differ in that, and few images make a noisy cell."""
    return f"{shifted.label}: {column.label}, {column.unit}; {shifted.figures.images:,} images per cell"


def _round_up(value: float) -> float:
    """The next of 1, 2, 3, 4, 5, 6, 8 and 10 times a power of ten; 1 for 0."""
    if not value:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10, 20) if step * power >= value * (1 - 1e-9))


def _scaled(show: Show, deepest: float) -> Callable[[float], Entry]:
    return lambda value: Entry(show(value), heat=round(100 * value / deepest))


def _difference(key: str, grids: Sequence[_Grid]) -> SuiteMaps | None:
    """Of exactly two runs on the same cells, where it is known how large noise can be."""
    together = [group for _, group in by_cells(grid.shifted for grid in grids) if len(group) == 2]
    if key not in _NOISE or not together:
        return None
    ours, theirs = (next(grid for grid in grids if grid.shifted == one) for one in together[0])
    column = Column(f"{_COLUMNS[key].label} difference", "points")
    cells = {name: list(zip(row, theirs.scores[name], strict=True)) for name, row in ours.scores.items()}
    deepest = _round_up(100 * max(abs(_less(key, pair)) for row in cells.values() for pair in row)) / 100
    images = ours.shifted.figures.images
    table = Table(
        f"{ours.shifted.label} − {theirs.shifted.label}: {column.label}, points; {images:,} images per cell",
        _columns(ours.shifted),
        tuple(
            Row(
                name if ours.shifted.is_own else corruption_label(name),
                tuple(_told_entry(_less(key, pair), _NOISE[key](pair, images), deepest) for pair in row),
            )
            for name, row in cells.items()
        ),
    )
    return SuiteMaps(f"{100 * deepest:g}", (table,))


def _less(key: str, pair: tuple[Scores, Scores]) -> float:
    return (pair[0][key] or 0.0) - (pair[1][key] or 0.0)


def _told_entry(difference: float, noise: float, deepest: float) -> Entry:
    """A difference within noise has brackets and no colour."""
    text = signed(difference, digits=1)
    if abs(difference) <= noise:
        return Entry(f"({text})", heat=0)
    return Entry(text, heat=round(100 * difference / deepest))


def _error_noise(pair: tuple[Scores, Scores], images: int) -> float:
    """Two standard errors, as if the two runs had seen different images: on the same images it is less."""
    return 2 * math.sqrt(sum((one["error"] or 0.0) * (1 - (one["error"] or 0.0)) / images for one in pair))


def _ece_noise(pair: tuple[Scores, Scores], _: int) -> float:
    """As much as the two noise floors together; without a floor, all could be noise."""
    floors = [one.get("ece_width15_floor") for one in pair]
    return sum(math.inf if floor is None else floor for floor in floors)


_NOISE: dict[str, Callable[[tuple[Scores, Scores], int], float]] = {
    "error": _error_noise,
    "ece_width15": _ece_noise,
}


def _columns(shifted: ShiftedRun) -> tuple[Column, ...]:
    if not shifted.has_severities:
        return Column("Shift"), Column(*named_severities(shifted))
    return Column("Severity"), *(Column(str(number)) for number in shifted.figures.severities)


def _table(caption: str, shifted: ShiftedRun, values: Values, entry: Callable[[float], Entry]) -> Table:
    means = [sum(column) / len(column) for column in zip(*values.values(), strict=True)]
    labels = {name: name if shifted.is_own else corruption_label(name) for name in values}
    rows = [Row(labels[name], tuple(map(entry, row))) for name, row in values.items()]
    if len(rows) > 1:
        rows.append(Row(f"Mean of {len(rows)}", tuple(map(entry, means)), "mean"))
    return Table(caption, _columns(shifted), tuple(rows))


SECTION = Section("heat-maps", "Heat maps", heat_maps, "sections/heat_maps.html")
