"""Run what is missing of the paper's rows, in one process: train or go on, evaluate, and keep the result."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from counterpoint.data import load
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.reproduction.rows import Folders, RowRun, minutes, read_result, write_result
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from counterpoint.watching import SILENT, Watcher


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

    False if `max_minutes` or `should_stop` ended it first. The same call then goes on from the last checkpoint. An
    evaluation that has begun is finished.
    """
    started = time.monotonic()
    missing = [run for run in wanted if read_result(folders.results, run) is None]
    for dataset in sorted({run.experiment.dataset for run in missing}):
        load(dataset, root)  # raises before the first training if a data set is missing
    for number, run in enumerate(missing, 1):
        minutes_left = None if max_minutes is None else max_minutes - (time.monotonic() - started) / 60
        if should_stop() or (minutes_left is not None and minutes_left <= 0):
            return False
        watcher.noted(f"{number} of {len(missing)}: {run.place.as_posix()}")
        data = load(run.experiment.dataset, root)
        options = Options(device, "eager" if run.schedule.eager else "auto", max_minutes=minutes_left)
        folder = folders.runs / run.place
        if not train(
            run.experiment, folder, data, seed=run.seed, options=options, watcher=watcher, should_stop=should_stop
        ):
            return False
        _evaluate(run, folders, root, device, watcher)
    return True


def _evaluate(run: RowRun, folders: Folders, root: Path | None, device: str, watcher: Watcher) -> None:
    images = run.schedule.images
    results = evaluate_run(
        load_run(folders.runs / run.place),
        root,
        device=device,
        clean_images=images,
        cell_images=images,
        watcher=watcher,
    )
    path = write_result(folders.results, run, results)
    watcher.noted(f"{run.place.as_posix()}: {minutes(results):.1f} minutes; written: {path}")
