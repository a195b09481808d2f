"""Every cell of every suite: for each metric one table per run, each cell with its place on a scale."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from counterpoint.report.metrics import BY_KEY, Metric
from counterpoint.report.numbers import signed
from counterpoint.report.run import ReportedRun, Scores, whole_scores
from counterpoint.report.section import Block, Content, Panel
from counterpoint.report.suites import ShiftedRun, by_cells, by_suite, is_folded, named_severities
from counterpoint.report.tables import Column, Entry, Row, Table

_METRICS = (
    *(BY_KEY[key] for key in ("error", "ece_width15", "ece_rms_width15", "nll", "brier", "overconfidence")),
    Metric("ece_width15_excess", Column("ECE excess", "equal-width 15, points"), signed),
    *(BY_KEY[key] for key in ("disagreement", "pairwise_kl")),
)
_SIGNED = {
    "overconfidence": "above zero: over-confident",
    "ece_width15_excess": "above zero: more than noise would show",
}

Values = dict[str, list[float]]
"""For each corruption, the ensemble's metric at each severity."""
Grid = tuple[ShiftedRun, dict[str, list[Scores]]]
"""One run on one suite, and the ensemble's scores in each cell."""


@dataclass(frozen=True)
class ScaledMaps:
    """Tables on one scale, so that their colours can be compared."""

    deepest: str  # the value that has the deepest colour, a round number
    tables: tuple[Table, ...]


@dataclass(frozen=True)
class SuiteMaps(ScaledMaps):
    """One metric of all runs on a suite."""

    title: str
    is_folded: bool
    difference: ScaledMaps | None  # of two runs


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


def heat_maps(runs: Sequence[ReportedRun]) -> HeatMaps | None:
    """One for each metric that some run has; None where no run was evaluated under shift."""
    suites = [[_grid(shifted) for shifted in group] for group in _on_one_scale([*by_suite(runs).values()])]
    maps = tuple(heat_map for metric in _METRICS if (heat_map := _heat_map(metric, suites)).suites)
    return HeatMaps(maps) if maps else None


def _on_one_scale(suites: Sequence[list[ShiftedRun]]) -> list[list[ShiftedRun]]:
    """A user's own shifts, of which each has few cells, have their colours beside those of the paper's suite."""
    beside = [shifted for group in suites if group[0].is_papers or group[0].is_own for shifted in group]
    others = [group for group in suites if not (group[0].is_papers or group[0].is_own)]
    return [beside, *others] if beside else others


def _grid(shifted: ShiftedRun) -> Grid:
    return shifted, {name: [*map(whole_scores, row)] for name, row in shifted.figures.cells.items()}


def _heat_map(metric: Metric, suites: Sequence[Sequence[Grid]]) -> HeatMap:
    every = [shifted for grids in suites for shifted, _ in grids]
    found = [(grids, having) for grids in suites if (having := _having(metric.key, grids))]
    return HeatMap(
        key=f"map-{metric.key.replace('_', '-')}",
        label=metric.column.label,
        unit=metric.column.unit,
        sign_means=_SIGNED.get(metric.key, ""),
        suites=tuple(
            SuiteMaps(
                *_maps(metric, having),
                title=grids[0][0].kind,
                is_folded=is_folded(grids[0][0], every),
                difference=_difference(metric, grids),
            )
            for grids, having in found
        ),
    )


def _having(key: str, grids: Sequence[Grid]) -> list[tuple[ShiftedRun, Values]]:
    """One metric of the runs that have it in every cell."""
    having = []
    for shifted, scores in grids:
        found = {name: [one.get(key) for one in row] for name, row in scores.items()}
        known = {name: [value for value in row if value is not None] for name, row in found.items()}
        if known == found:
            having.append((shifted, known))
    return having


def _maps(metric: Metric, having: Sequence[tuple[ShiftedRun, Values]]) -> tuple[str, tuple[Table, ...]]:
    """The value with the deepest colour, and a table for each run."""
    unit, heading = 1.0 if metric.is_decimal else 100.0, f"{metric.column.label}, {metric.column.unit}"
    highest = max(abs(value) for _, of_run in having for row in of_run.values() for value in row)
    deepest = _round_up(unit * highest) / unit

    def row(label: str, values: Sequence[float], kind: str = "") -> Row:
        entries = [Entry(_shown(metric, value), heat=round(100 * value / deepest)) for value in values]
        return Row(label, tuple(entries), kind)

    tables = []
    for shifted, of_run in having:
        rows = [row(shifted.shift_label(name), values) for name, values in of_run.items()]
        if len(rows) > 1:
            means = [sum(column) / len(column) for column in zip(*of_run.values(), strict=True)]
            rows.append(row(f"Mean of {len(rows)}", means, "mean"))
        tables.append(_table(f"{shifted.label}: {heading}", shifted, rows))
    return f"{unit * deepest:g}", tuple(tables)


def _shown(metric: Metric, value: float) -> str:
    """One digit fewer than in the other tables, so that six columns fit on a phone."""
    if metric.show is signed:
        return signed(value, digits=1)
    return f"{value:.2f}" if metric.is_decimal else f"{100 * value:.1f}"


def _round_up(value: float) -> float:
    """The next of 1, 2, 3, 4, 5, 6, 8 and 10 times a power of ten; 1 for 0."""
    if not value:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 3, 4, 5, 6, 8, 10, 20) if step * power >= value * (1 - 1e-9))


def _table(caption: str, shifted: ShiftedRun, rows: Sequence[Row]) -> Table:
    """With the number of images, since suites differ in that, and few images make a noisy cell."""
    heading = "Severity" if shifted.has_severities else "Shift"
    columns = [Column(name.removeprefix("Severity ")) for name in named_severities(shifted)]
    caption = f"{caption}; {shifted.figures.images:,} images per cell"
    return Table(caption, (Column(heading), *columns), tuple(rows))


def _difference(metric: Metric, grids: Sequence[Grid]) -> ScaledMaps | None:
    """Of exactly two runs on the same cells, where it is known how large noise can be."""
    together = [group for _, group in by_cells(shifted for shifted, _ in grids) if len(group) == 2]
    if metric.key not in _NOISE or not together:
        return None
    (ours, our_scores), (theirs, their_scores) = (grid for grid in grids if grid[0] in together[0])
    cells = {name: list(zip(row, their_scores[name], strict=True)) for name, row in our_scores.items()}
    deepest = _round_up(100 * max(abs(_less(metric.key, pair)) for row in cells.values() for pair in row)) / 100
    rows = [
        Row(ours.shift_label(name), tuple(_told_entry(metric.key, pair, ours.figures.draws, deepest) for pair in row))
        for name, row in cells.items()
    ]
    caption = f"{ours.label} − {theirs.label}: {metric.column.label} difference, points"
    return ScaledMaps(f"{100 * deepest:g}", (_table(caption, ours, rows),))


def _less(key: str, pair: tuple[Scores, Scores]) -> float:
    return (pair[0][key] or 0.0) - (pair[1][key] or 0.0)


def _told_entry(key: str, pair: tuple[Scores, Scores], draws: int, deepest: float) -> Entry:
    """A difference within noise has brackets and no colour."""
    difference = _less(key, pair)
    text = signed(difference, digits=1)
    if abs(difference) <= _NOISE[key](pair, draws):
        return Entry(f"({text})", heat=0)
    return Entry(text, heat=round(100 * difference / deepest))


def _error_noise(pair: tuple[Scores, Scores], draws: int) -> float:
    """Two standard errors, as if the two runs had seen different images: on the same images it is less."""
    return 2 * math.sqrt(sum((one["error"] or 0.0) * (1 - (one["error"] or 0.0)) / draws for one in pair))


def _ece_noise(pair: tuple[Scores, Scores], _: int) -> float:
    """As much as the two noise floors together; without a floor, all could be noise."""
    floors = [one.get("ece_width15_floor") for one in pair]
    return sum(math.inf if floor is None else floor for floor in floors)


_NOISE: dict[str, Callable[[tuple[Scores, Scores], int], float]] = {
    "error": _error_noise,
    "ece_width15": _ece_noise,
}
