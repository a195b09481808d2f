"""The paper's rows beside ours: a difference only where a run has the row's configuration and all of its images."""

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from statistics import mean

from counterpoint import config
from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS, is_row
from counterpoint.experiments.paper import PAPER, PaperRow
from counterpoint.report.run import AGGREGATES, Run
from counterpoint.report.tables import Cell, Column, Row, Table, percent, signed

_METRICS = ("error", "ece_width15", "ece_rms_width15")
_COLUMNS = (
    Column("Row"),
    *(Column(label, f"{images}, %") for images in ("clean", "-C") for label in ("Error", "ECE", "ECE-rms")),
)
_DATA_SETS = {"cifar10": "CIFAR-10", "cifar100": "CIFAR-100"}
_CHANGES = 3  # as many as are named
_ALL_IMAGES = {"validation": 5_000, "test": 10_000}

Figures = tuple[float | None, ...]
"""Error, ECE and ECE-rms on clean images, then on -C; None where the run has no such figure of all images."""


@dataclass(frozen=True)
class BesidePaper:
    """One table of the paper for one data set: the rows that some run belongs to, and the others."""

    title: str
    table: Table
    not_run: Table | None

    @property
    def tables(self) -> tuple[Table, ...]:
        return (self.table, self.not_run) if self.not_run else (self.table,)


def beside_paper(runs: Sequence[Run]) -> tuple[BesidePaper, ...]:
    """Every table of the paper that a run has a row in."""
    by_row: dict[str, list[Run]] = {}
    for run in runs:
        by_row.setdefault(run.results["experiment"], []).append(run)
    tables = {_table_of(name): None for name in PAPER if name in by_row}
    return tuple(_beside(number, dataset, by_row) for number, dataset in tables)


def stands_for_row(run: Run) -> bool:
    """Whether the run has the configuration of the paper's row of its name."""
    return run.results["experiment"] in PAPER and is_row(run.results["config"])


def _table_of(name: str) -> tuple[int, str]:
    return PAPER[name].table, name.partition("/")[0]


def _beside(number: int, dataset: str, by_row: dict[str, list[Run]]) -> BesidePaper:
    rows = {name: row for name, row in PAPER.items() if _table_of(name) == (number, dataset)}
    ran = [line for name, row in rows.items() if name in by_row for line in _lines(row, by_row[name])]
    others = [_paper_line(row, f"{row.label}: not run") for name, row in rows.items() if name not in by_row]
    title = f"Table {number}, {_DATA_SETS[dataset]}"
    return BesidePaper(
        title,
        Table(f"{title}: the paper’s figures and ours", _COLUMNS, tuple(ran)),
        Table(f"{title}: the paper’s other rows", _COLUMNS, tuple(others)) if others else None,
    )


def _lines(row: PaperRow, runs: Sequence[Run]) -> list[Row]:
    standing = [_our_figures(run) for run in runs if stands_for_row(run)]
    lines = [_paper_line(row, f"{row.label}: the paper", "run")]
    lines += [Row(_our_label(run), tuple(_cell(value) for value in _our_figures(run)), "member") for run in runs]
    if standing:
        label = "difference" if len(standing) == 1 else f"difference, mean of {len(standing)} runs"
        lines.append(Row(label, tuple(_differences(row, standing)), "member"))
    return lines


def _paper_line(row: PaperRow, label: str, kind: str = "") -> Row:
    return Row(label, tuple(_cell(value) for value in _paper_figures(row)), kind)


def _paper_figures(row: PaperRow) -> tuple[float, ...]:
    return (*astuple(row.clean), *astuple(row.corrupted))


def _our_figures(run: Run) -> Figures:
    clean = run.clean["ensemble"] if _is_whole_clean(run) else {}
    corrupted = run.aggregate(AGGREGATES[0])["ensemble"] if _is_whole_corrupted(run) else {}
    return tuple(scores.get(key) for scores in (clean, corrupted) for key in _METRICS)


def _is_whole_clean(run: Run) -> bool:
    on = run.results["evaluated_on"]
    return on["images"] == _ALL_IMAGES.get(on["part"])


def _is_whole_corrupted(run: Run) -> bool:
    return run.is_corrupted and run.corrupted["images"] == _ALL_IMAGES["test"]


def _our_label(run: Run) -> str:
    """Which run it is, in what it is not the row's, and why figures of it are not shown."""
    notes = [f"ours, seed {run.results['run']['seed']}"]
    if not stands_for_row(run):
        notes.append(f"another configuration{_changes(run)}")
    if not _is_whole_clean(run):
        notes.append(f"clean on {run.results['evaluated_on']['images']:,} images only")
    if not _is_whole_corrupted(run):
        notes.append(f"-C on {run.corrupted['images']:,} images a cell only" if run.is_corrupted else "-C not run")
    return ", ".join(notes)


def _changes(run: Run) -> str:
    """The first few settings that differ from the row's; empty for settings of another version of counterpoint."""
    try:
        ours = config.from_dict(run.results["config"])
    except InputError:
        return ""
    changes = config.differences(config.to_dict(EXPERIMENTS[run.results["experiment"]]), config.to_dict(ours))
    more = f" and {len(changes) - _CHANGES} more" if len(changes) > _CHANGES else ""
    return f" ({', '.join(changes[:_CHANGES])}{more})"


def _cell(value: float | None) -> Cell:
    return Cell("–" if value is None else percent(value))


def _differences(row: PaperRow, standing: Sequence[Figures]) -> list[Cell]:
    """The mean of our runs less the paper's figure, over those runs that have it."""
    cells = []
    for paper, *ours in zip(_paper_figures(row), *standing, strict=True):
        known = [value for value in ours if value is not None]
        cells.append(Cell(signed(mean(known) - paper) if known else "–"))
    return cells
