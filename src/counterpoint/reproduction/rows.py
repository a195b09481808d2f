"""The results of the paper's rows as small files to commit: results/<experiment>/<schedule>-<seed>.json.
The condensed scores are beside each, <schedule>-<seed>.npz (`evaluation.condensed`).

A file counts for its row only if its configuration's hash is that of the row at the file's schedule. Nothing here
imports torch.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from counterpoint import config
from counterpoint.config import Experiment
from counterpoint.errors import InputError, one_of, shown, some
from counterpoint.experiments import config_hash, find_experiment, select_experiments
from counterpoint.experiments.hashes import read_results_of, saved_hash
from counterpoint.experiments.paper import PAPER
from counterpoint.experiments.schedules import SCHEDULES, Schedule
from counterpoint.records import progress
from counterpoint.records.codec import encode
from counterpoint.records.figures import Summary
from counterpoint.records.files import SCHEMA
from counterpoint.records.results import Results, Shifted
from counterpoint.runs.folder import MOST_SEED
from counterpoint.storage.files import nearest_folder, read_json, write_json

TABLES = {"table1": (1,), "table2": (2,), "table3": (3,), "all": (1, 2, 3)}


@dataclass(frozen=True)
class Folders:
    """Where the runs and the committed results are."""

    runs: Path
    results: Path

    def __post_init__(self) -> None:
        for folder in (self.runs, self.results):
            nearest_folder(folder)


@dataclass(frozen=True)
class RowRun:
    """One row at one schedule with one seed."""

    row: str
    schedule: Schedule
    seed: int

    @property
    def experiment(self) -> Experiment:
        """The row's experiment, shortened as the schedule says."""
        return self.schedule.shorten(find_experiment(self.row))

    @property
    def place(self) -> Path:
        """Where its folder is among the runs, and its file (with .json) among the results."""
        return Path(self.row) / f"{self.schedule.name}-{self.seed}"


def is_place(place: Path) -> bool:
    """Whether a run of a row is looked for there, among the runs."""
    schedule, _, seed = place.name.rpartition("-")
    return place.parent.as_posix() in PAPER and schedule in SCHEDULES and seed.isdecimal()


def select_rows(table: str, words: Sequence[str] = ()) -> list[str]:
    """The names of a table's rows, in its order.

    With `words`, only the rows that match one of them, such as "cifar10 single". A row must have all words of a text.
    """
    numbers = TABLES[one_of("table", table, TABLES)]
    rows = [name for name, row in PAPER.items() if row.table in numbers]
    if not words:
        return rows
    wanted = {e.name for text in words for e in select_experiments(text.split())}
    if not wanted.intersection(rows):
        wrong, elsewhere = " or ".join(map(repr, words)), [name for name in PAPER if name in wanted]
        of_others = [f"{name} (table{PAPER[name].table})" for name in elsewhere]
        remedy = f"other tables have {some(of_others)}" if elsewhere else "`counterpoint experiments` lists the names"
        raise InputError(f"no row of {table} fits {wrong}; {remedy}")
    return [name for name in rows if name in wanted]


def parse_seeds(text: str) -> list[int]:
    """Seeds from a list such as "0,1,2"."""
    parts = [part.strip() for part in text.split(",")]
    # Python refuses to read a number of thousands of digits.
    if not all(re.fullmatch(r"[0-9]{1,19}", part) and int(part) <= MOST_SEED for part in parts):
        raise InputError(
            f"seeds are {shown(text)!r}; they must be whole numbers separated by commas, such as 0,1,2, and at most "
            f"{MOST_SEED:,}"
        )
    return list(dict.fromkeys(map(int, parts)))


def write_result(folder: Path, run: RowRun, results: Results) -> Path:
    """Write a row's result as a small file: every metric of every cell in results.json, but no bins."""
    path = folder / f"{run.place}.json"
    hashed = config_hash(config.from_dict(results.config))
    if hashed != config_hash(run.experiment):
        raise InputError(f"the results are not those of {run.row} at the schedule {run.schedule.name!r}")
    # Seeds differ in earlier digits than the sixth.
    kept = encode(keep_small(results), lambda number: round(number, 6))
    write_json(path, {"schema": SCHEMA, "schedule": run.schedule.name, "hash": hashed, **kept})
    return path


def keep_small(results: Results) -> Results:
    """The results without bins and curves, and without the members in the cells."""

    def of_set(summary: Summary) -> Summary:
        return replace(summary, reliability=None, member_reliability=(), risk_coverage=None)

    def of_cell(summary: Summary) -> Summary:
        return replace(of_set(summary), members=(), honest=None)

    def of_suite(shifted: Shifted) -> Shifted:
        cells = {name: tuple(map(of_cell, summaries)) for name, summaries in shifted.cells.items()}
        return replace(shifted, cells=cells, risk_coverage=(), member_bins=())

    return replace(
        results,
        clean=of_set(results.clean),
        corrupted=of_suite(results.corrupted) if results.corrupted else None,
        shifts={name: of_suite(shifted) for name, shifted in results.shifts.items()},
    )


def read_result(folder: Path, run: RowRun) -> Results | None:
    """The result of this row, schedule and seed. None where there is none, or only one of another configuration."""
    remedy = "restore it, or move it away and run the row again"
    return read_results_of(folder / f"{run.place}.json", run.experiment, run.seed, remedy)


def why_not_counted(folder: Path, run: RowRun) -> str:
    """What is wrong with a result that can be read and is not this run's; empty where there is none."""
    file = folder / f"{run.place}.json"
    if not file.exists() or read_result(folder, run) is not None:
        return ""
    return f"{file} is of other settings or of another seed, and does not count; move it away to run the row"


@dataclass(frozen=True)
class RowResults:
    """The results of a row at one schedule, by ascending seed."""

    read: Mapping[RowRun, Results]
    damaged: Mapping[RowRun, str]
    """What is wrong with each file that cannot be read, and what to do."""


def results_of_row(folder: Path, row: str, schedule: Schedule) -> RowResults:
    """Every result of a row that counts. A file that is damaged does not keep the others from being read."""
    read: dict[RowRun, Results] = {}
    damaged: dict[RowRun, str] = {}
    for run in found_runs(folder, row, schedule):
        try:
            if result := read_result(folder, run):
                read[run] = result
        except InputError as error:
            damaged[run] = str(error)
    return RowResults(read, damaged)


def minutes(result: Results) -> float:
    """How long training and evaluation took together."""
    return (result.trained.train_seconds + result.evaluation.seconds) / 60


def found_runs(folder: Path, row: str, schedule: Schedule) -> Iterator[RowRun]:
    """The runs of a row that have a file or a folder in `folder`, by ascending seed. None is there twice."""
    names = {path.name.removesuffix(".json") for path in (folder / row).glob(f"{schedule.name}-*")}
    matches = (re.fullmatch(rf"{schedule.name}-(0|[1-9]\d*)", name) for name in names)
    return (RowRun(row, schedule, seed) for seed in sorted(int(match[1]) for match in matches if match))


def epochs_done(runs: Path, run: RowRun) -> int | None:
    """How many epochs of a run are done. None if it was not begun, or was begun with other settings."""
    folder = runs / run.place
    if not (folder / "run.json").exists():
        return None
    record = read_json(folder / "run.json")
    if not isinstance(record, dict) or saved_hash(record.get("experiment", {})) != config_hash(run.experiment):
        return None
    return progress.epochs_done(folder)
