"""Ours beside the paper's: the tables that `counterpoint reproduce` prints, and the page that it writes."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from rich.table import Table

from counterpoint.errors import InputError
from counterpoint.experiments.schedules import SCHEDULES, Schedule
from counterpoint.records.images import Shift
from counterpoint.records.results import Results
from counterpoint.reproduction.beside_paper import our_figures, pair_figures, paper_tables
from counterpoint.reproduction.rows import (
    Folders,
    RowRun,
    epochs_done,
    found_runs,
    minutes,
    results_of_row,
    select_rows,
)
from counterpoint.storage.files import write_atomically

HEADINGS = ("row", "run", "error", "ECE", "ECE-rms", "-C error", "-C ECE", "-C ECE-rms")
_CLEAN_CALIBRATION = slice(1, 3)
_NOTES = (
    "All figures are percentages. Ours are the mean over n seeds, with ± the standard deviation where n is above 1. "
    "The ECE uses 15 equal-width bins. On -C each metric is computed per corruption, over its five severities "
    "together, and then averaged over the 15 corruptions."
)
_OUR_PAGES = (
    " [Findings](findings.md) says what the figures mean. [Differences](differences.md) says where ours differ from "
    "the paper's, and why. The [glossary](glossary.md) explains the terms."
)
_DOES_IT_RUN = (
    "This schedule only shows that a row trains and is evaluated from start to end. Its figures come from few steps "
    "and few images, and show nothing more."
)
_SHORTER = (
    "This is not the paper's schedule, so these figures cannot be compared with the paper's. Clean calibration is "
    "left out, because networks that are trained briefly are not yet over-confident."
)


@dataclass(frozen=True)
class Line:
    """A row of a table: its name, what was run of it, and six figures of ours and of the paper's."""

    row: str
    status: str
    ours: tuple[str, ...]
    theirs: tuple[str, ...]


def table_lines(rows: Sequence[str], schedule: Schedule, folders: Folders) -> list[Line]:
    """One line per row, with every seed that was run."""
    return [_line(row, schedule, folders) for row in rows]


def terminal_tables(rows: Sequence[str], schedule: Schedule, folders: Folders) -> list[Table]:
    """The tables of `rows`, one per table of the paper and data set."""
    tables = []
    for printed in paper_tables(rows):
        title = f"{printed.title}, schedule {schedule.name} ({schedule.about})"
        table = Table(title=title, title_justify="left", box=None, padding=(0, 1, 0, 0))
        for heading in HEADINGS:
            words = heading in HEADINGS[:2]
            # Folded where the terminal is narrow: a figure that is cut short is a wrong one.
            table.add_column(
                heading.replace("-C ", "-C\n"),
                justify="left" if words else "right",
                no_wrap=heading == "row",
                overflow="fold",
            )
        for line in table_lines(printed.rows, schedule, folders):
            table.add_row(line.row.removeprefix(f"{printed.dataset}/"), line.status, *line.ours)
            if schedule.images is None:
                table.add_row("", "the paper", *line.theirs, style="dim")
        tables.append(table)
    return tables


def notes(schedule: Schedule) -> str:
    """What a reader must know beside the figures of a schedule."""
    if schedule.images is not None:
        return _DOES_IT_RUN
    return _NOTES if schedule.name == "paper" else f"{_NOTES} {_SHORTER}"


def page(folders: Folders, place: Path) -> str:
    """What the page in the folder `place` says: every table at each schedule of which something was run, and where it
    comes from. Only where our other pages are beside it, it leads to them."""
    others = _OUR_PAGES if (place / "findings.md").exists() else ""
    parts = [
        "# The paper's tables beside ours",
        "This page shows every row of the paper's tables with our figures. A row is one experiment. A result counts "
        f"for a row only if its whole configuration is the row's; a hash decides this.{others}",
        "`counterpoint reproduce all --page FILE` writes this page and trains nothing. It reads the results "
        "(`--results`). For unfinished rows it reads the folder of runs (`--out`). With `--run` the command first "
        "trains and evaluates the rows that are missing.",
        "The .npz file beside a result has the row's condensed scores, unless the result is older than "
        "such files. With them two rows are compared image by image without their runs: `counterpoint compare RESULT "
        "OTHER`.",
    ]
    for schedule in SCHEDULES.values():
        sections = _sections(schedule, folders, place)
        if sections or schedule.name == "paper":
            parts += [f"## Schedule {schedule.name}: {schedule.about}", *(sections or ["No row has been run yet."])]
    return "\n\n".join(parts) + "\n"


def write_page(path: Path, folders: Folders) -> None:
    """Write `page` to a file, unless it holds it already."""
    if not is_written(path, folders):
        write_atomically(path, page(folders, path.parent).encode())


def is_written(path: Path, folders: Folders) -> bool:
    """Whether the file holds `page` as it would be now."""
    return path.is_file() and path.read_bytes() == page(folders, path.parent).encode()


def _sections(schedule: Schedule, folders: Folders, place: Path) -> list[str]:
    """The Markdown tables of a schedule and what was run; empty where nothing was."""
    rows = select_rows("all")
    found = [results_of_row(folders.results, row, schedule) for row in rows]
    results = [pair for one in found for pair in one.read.items()]
    damaged = [run.place.as_posix() for one in found for run in one.damaged]
    left_out = [f"Left out, because their files are damaged: {', '.join(damaged)}."] if damaged else []
    files = quote(Path(os.path.relpath(folders.results, place)).as_posix())
    table = [_provenance(results, files)] if results else []
    if schedule.images is not None:
        return [notes(schedule), *left_out, *table] if results or damaged else []
    if not results and all(line.status == "not run" for line in table_lines(rows, schedule, folders)):
        return []
    tables = [
        f"### {printed.title}\n\n" + _markdown(table_lines(printed.rows, schedule, folders))
        for printed in paper_tables(rows)
    ]
    ran = ["### What was run", *table] if results else []
    return [f"Each cell shows our figure, then the paper's. {notes(schedule)}", *left_out, *tables, *ran]


def _line(row: str, schedule: Schedule, folders: Folders) -> Line:
    found = results_of_row(folders.results, row, schedule)
    results = found.read.values()
    begun = [run for run in found_runs(folders.runs, row, schedule) if run not in {**found.read, **found.damaged}]
    parts = [f"n = {len(results)}, {sum(map(minutes, results)):.1f} min"] if results else []
    if len({result.corrupted.shift for result in results if result.corrupted}) > 1:
        parts.append("-C is not of the same images")
    parts += [f"seed {run.seed}: its result is damaged" for run in found.damaged]
    parts += [f"seed {run.seed}: {far}" for run in begun if (far := _how_far(run, folders.runs))]
    pairs = pair_figures(row, [our_figures(result) for result in results])
    ours = [_spread(pair.ours) for pair in pairs]
    if schedule.name != "paper":
        ours[_CLEAN_CALIBRATION] = ["–"] * 2
    theirs = tuple(f"{100 * pair.paper:#.3g}" for pair in pairs)
    return Line(row, "; ".join(parts) or "not run", tuple(ours), theirs)


def _how_far(run: RowRun, runs: Path) -> str:
    """How far a run without a result is; empty if it was begun with other settings."""
    try:
        epoch = epochs_done(runs, run)
    except InputError:  # `--run` names the file; the rows that have results can be shown
        return "its files are damaged"
    return "" if epoch is None else f"epoch {epoch} of {run.experiment.epochs}"


def _spread(values: Sequence[float]) -> str:
    if not values:
        return "–"
    mean = f"{100 * statistics.mean(values):.2f}"
    return mean if len(values) == 1 else f"{mean} ± {100 * statistics.stdev(values):.2f}"


def _markdown(lines: Sequence[Line]) -> str:
    rows = [(f"`{line.row}`", line.status, *map("/".join, zip(line.ours, line.theirs, strict=True))) for line in lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in (HEADINGS, ("---", "---", *["---:"] * 6), *rows))


def _provenance(results: Sequence[tuple[RowRun, Results]], files: str) -> str:
    """Where each result comes from. `files` is the way from the page to the results."""
    head = ("result", "minutes", "device", "engine", "commit", "evaluated on", "-C")
    rows = [
        (
            f"[{run.place.as_posix()}]({files}/{run.place.as_posix()}.json)",
            f"{minutes(result):.1f}",
            _of_segments(result, "device"),
            _of_segments(result, "engine"),
            _of_segments(result, "commit"),
            f"{result.evaluated_on.images:,} {result.evaluated_on.part} images",
            cells_in_words(result.corrupted) if result.corrupted else "–",
        )
        for run, result in results
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def _of_segments(result: Results, key: Literal["device", "engine", "commit"]) -> str:
    values = (getattr(segment, key) or "unknown" for segment in result.trained.segments)
    return ", ".join(dict.fromkeys(value[:7] if key == "commit" else value for value in values))


def cells_in_words(corrupted: Shift) -> str:
    """Where corrupted images come from, and how many of them there are."""
    source, images = corrupted.source, f"{corrupted.images:,} images per cell"
    if source.kind == "official":
        return f"official, {images}"
    constants = "" if source.constants == "cifar-c" else f"{source.constants}, "
    return f"regenerated ({constants}seed {source.seed}, frost: {source.frost}), {images}"
