"""The paper's rows beside ours: a difference only where a run has the row's configuration and all of its images."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import mean

from counterpoint import config
from counterpoint.errors import InputError, some
from counterpoint.experiments import EXPERIMENTS
from counterpoint.experiments.paper import PAPER
from counterpoint.report.numbers import or_dash, percent, signed
from counterpoint.report.run import ReportedRun, grouped
from counterpoint.report.section import Block, Content
from counterpoint.report.suites import papers_suites
from counterpoint.report.tables import Column, Row, Table, plain_row
from counterpoint.reproduction.beside_paper import (
    Figures,
    PairedFigure,
    PaperTable,
    our_figures,
    pair_figures,
    paper_figures,
    paper_tables,
    stands_for_row,
)

TITLE = "Compared with the paper"
_COLUMNS = (
    Column("Row"),
    *(Column(label, f"{images}, %") for images in ("clean", "-C") for label in ("Error", "ECE", "ECE-rms")),
)
_CHANGES = 3  # as many as are named
_ALL_IMAGES = {"validation": 5_000, "test": 10_000}


@dataclass(frozen=True)
class TableBeside:
    """One table of the paper for one data set: the rows that some run belongs to, and the others."""

    title: str
    table: Table
    not_run: Table | None


@dataclass(frozen=True)
class BesidePaper(Content):
    printed: tuple[TableBeside, ...]
    is_regenerated: bool  # whether our -C is not the paper's

    def blocks(self) -> Iterator[Block]:
        yield Block(TITLE, tuple(table for printed in self.printed for table in (printed.table, printed.not_run)))


def beside_paper(runs: Sequence[ReportedRun]) -> BesidePaper | None:
    """Every table of the paper that a run has a row in; None where there is no such run."""
    trained = [run for run in runs if run.results.run]
    by_row = grouped(trained, lambda run: run.results.experiment)
    found = tuple(_beside(table, by_row) for table in paper_tables(PAPER) if by_row.keys() & table.rows)
    is_regenerated = any(shifted.figures.source.kind == "regenerated" for shifted in papers_suites(trained))
    return BesidePaper(found, is_regenerated) if found else None


def _beside(printed: PaperTable, by_row: dict[str, list[ReportedRun]]) -> TableBeside:
    ran = [line for row in printed.rows if row in by_row for line in _lines(row, by_row[row])]
    not_run = [_paper_line(row, "not run") for row in printed.rows if row not in by_row]
    return TableBeside(
        printed.title,
        Table(f"{printed.title}: the paper’s figures and ours", _COLUMNS, tuple(ran)),
        Table(f"{printed.title}: the paper’s other rows", _COLUMNS, tuple(not_run)) if not_run else None,
    )


def _lines(row: str, runs: Sequence[ReportedRun]) -> list[Row]:
    standing = [_whole_figures(run) for run in runs if stands_for_row(run.results)]
    lines = [_paper_line(row, "the paper", "run")]
    lines += [plain_row(_our_label(run), *_texts(_whole_figures(run)), kind="member") for run in runs]
    if standing:
        label = "difference" if len(standing) == 1 else f"difference, mean of {len(standing)} runs"
        lines.append(plain_row(label, *map(_difference, pair_figures(row, standing)), kind="member"))
    return lines


def _paper_line(row: str, note: str, kind: str = "") -> Row:
    return plain_row(f"{PAPER[row].label}: {note}", *_texts(paper_figures(row)), kind=kind)


def _whole_figures(run: ReportedRun) -> Figures:
    """Only those of all images."""
    return our_figures(run.results, clean=_is_whole_clean(run), corrupted=_is_whole_corrupted(run))


def _is_whole_clean(run: ReportedRun) -> bool:
    on = run.results.evaluated_on
    return on.images == _ALL_IMAGES[on.part]


def _is_whole_corrupted(run: ReportedRun) -> bool:
    corrupted = run.results.corrupted
    return corrupted is not None and corrupted.images == _ALL_IMAGES["test"]


def _our_label(run: ReportedRun) -> str:
    """Which run it is, in what it is not the row's, and why figures of it are not shown."""
    notes = [f"ours, seed {run.results.seed}"]
    if not stands_for_row(run.results):
        notes.append(f"another configuration{_changes(run)}")
    if not _is_whole_clean(run):
        notes.append(f"clean on {run.results.evaluated_on.images:,} images only")
    if not _is_whole_corrupted(run):
        corrupted = run.results.corrupted
        notes.append(f"-C on {corrupted.images:,} images per cell only" if corrupted else "-C not run")
    return ", ".join(notes)


def _changes(run: ReportedRun) -> str:
    """The first few settings that differ from the row's; empty for settings of another version of counterpoint."""
    try:
        ours = config.from_dict(run.results.config)
    except InputError:
        return ""
    changes = config.differences(config.to_dict(EXPERIMENTS[run.results.experiment]), config.to_dict(ours))
    return f" ({some(changes, _CHANGES)})"


def _texts(figures: Figures) -> list[str]:
    return [or_dash(percent, figure) for figure in figures]


def _difference(pair: PairedFigure) -> str:
    """The mean of our runs less the paper's figure."""
    return signed(mean(pair.ours) - pair.paper) if pair.ours else "–"
