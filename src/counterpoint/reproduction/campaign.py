"""Run what is missing of the paper's rows, in one process: train or go on, evaluate, and keep the result."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from counterpoint.data import load
from counterpoint.errors import StoppedError
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

    False if `max_minutes` or `should_stop` ended it first. The same call then goes on from the last checkpoint, or from
    the cells that are evaluated.
    """
    started = time.monotonic()

    def minutes_left() -> float | None:
        return None if max_minutes is None else max_minutes - (time.monotonic() - started) / 60

    def is_over() -> bool:
        left = minutes_left()
        return should_stop() or (left is not None and left <= 0)

    missing = [run for run in wanted if read_result(folders.results, run) is None]
    for dataset in sorted({run.experiment.dataset for run in missing}):
        load(dataset, root)  # raises before the first training if a data set is missing
    for number, run in enumerate(missing, 1):
        if is_over():
            return False
        watcher.noted(f"{number} of {len(missing)}: {run.place.as_posix()}")
        data = load(run.experiment.dataset, root)
        options = Options(device, "eager" if run.schedule.eager else "auto", max_minutes=minutes_left())
        folder = folders.runs / run.place
        if not train(
            run.experiment, folder, data, seed=run.seed, options=options, watcher=watcher, should_stop=should_stop
        ):
            return False
        if is_over():
            return False
        images = run.schedule.images
        try:
            results = evaluate_run(
                load_run(folder),
                root,
                device=device,
                clean_images=images,
                cell_images=images,
                max_minutes=minutes_left(),
                should_stop=should_stop,
                watcher=watcher,
            )
        except StoppedError:
            return False
        path = write_result(folders.results, run, results)
        watcher.noted(f"{run.place.as_posix()}: {minutes(results):.1f} minutes; written: {path}")
    return True
