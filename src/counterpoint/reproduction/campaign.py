"""Run what is missing of the paper's rows, in one process: train or go on, evaluate, and keep the result."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from counterpoint.data import load
from counterpoint.devices import choose_device
from counterpoint.errors import InputError, StoppedError
from counterpoint.evaluation.condensed import condense, condensed_file, write_condensed
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.scores import read_scores
from counterpoint.records.results import Results
from counterpoint.reproduction.rows import Folders, RowRun, minutes, read_result, why_not_counted, write_result
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from counterpoint.watching import SILENT, Watcher


class RowsFailedError(InputError):
    """Rows that could not be run, each with its reason. The other rows were run."""


def run_missing(
    wanted: Sequence[RowRun],
    folders: Folders,
    *,
    root: Path | None = None,
    device: str = "auto",
    max_minutes: float | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    watcher: Watcher = SILENT,
) -> bool:
    """Run those of `wanted` that have no result yet. True when none is missing any more.

    False if `max_minutes` or `should_stop` ended it first. The same call then goes on from the last checkpoint, or from
    the cells that are evaluated. A row that fails does not stop the others: RowsFailedError then names it at the end.
    """
    started = time.monotonic()

    def minutes_left() -> float | None:
        return None if max_minutes is None else max_minutes - (time.monotonic() - started) / 60

    missing, kept = _without_result(wanted, folders)
    for dataset in sorted({run.experiment.dataset for run in missing}):
        load(dataset, root)  # raises before the first training if a data set is missing
    choose_device(device)
    failed = kept
    for reason in kept:
        watcher.warned(reason)
    is_stopped = False
    for number, run in enumerate(missing, 1):
        if is_stopped := _is_over(minutes_left(), should_stop):
            break
        watcher.noted(f"{number} of {len(missing)}: {run.place.as_posix()}")
        try:
            results = _run(
                run,
                folders,
                root=root,
                device=device,
                minutes_left=minutes_left,
                should_stop=should_stop,
                watcher=watcher,
            )
        except StoppedError:
            is_stopped = True
            break
        except InputError as error:
            failed.append(f"{run.place.as_posix()} failed: {error}")
            watcher.warned(failed[-1])
            continue
        path = keep_row(folders, run, results)
        watcher.noted(f"{run.place.as_posix()}: {minutes(results):.1f} minutes; written: {path}")
    if failed:
        raise RowsFailedError("; ".join(failed))
    return not is_stopped


def keep_row(folders: Folders, run: RowRun, results: Results) -> Path:
    """Write a row's result, and beside it the condensed scores of its run. These come first: a row that has a result
    is not run again."""
    scores = condense(read_scores(folders.runs / run.place))
    write_condensed(condensed_file(folders.results / f"{run.place}.json"), scores)
    return write_result(folders.results, run, results)


def _without_result(wanted: Sequence[RowRun], folders: Folders) -> tuple[list[RowRun], list[str]]:
    """The runs that have no result, and what is wrong with results that cannot be read or are of another run. Those
    are not made again: the file may be all that is left of a long training.
    """
    missing, kept = [], []
    for run in wanted:
        try:
            if reason := why_not_counted(folders.results, run):
                kept.append(f"{run.place.as_posix()} was not run: {reason}")
            elif read_result(folders.results, run) is None:
                missing.append(run)
        except InputError as error:
            kept.append(f"{run.place.as_posix()} was not run: {error}")
    return missing, kept


def _is_over(minutes_left: float | None, should_stop: Callable[[], bool]) -> bool:
    return should_stop() or (minutes_left is not None and minutes_left <= 0)


def _run(
    run: RowRun,
    folders: Folders,
    *,
    root: Path | None,
    device: str,
    minutes_left: Callable[[], float | None],
    should_stop: Callable[[], bool],
    watcher: Watcher,
) -> Results:
    """Train a row and evaluate it, or go on with that. StoppedError if the time is over, or a stop is asked for."""
    folder, images = folders.runs / run.place, run.schedule.images
    options = Options(device, "eager" if run.schedule.eager else "auto", max_minutes=minutes_left())
    data = load(run.experiment.dataset, root)
    finished = train(
        run.experiment, folder, data, seed=run.seed, options=options, watcher=watcher, should_stop=should_stop
    )
    left = minutes_left()
    if not finished or _is_over(left, should_stop):
        raise StoppedError
    return evaluate_run(
        load_run(folder),
        root,
        device=device,
        clean_images=images,
        cell_images=images,
        max_minutes=left,
        should_stop=should_stop,
        watcher=watcher,
    )
