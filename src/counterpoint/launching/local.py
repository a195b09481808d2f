"""Jobs on this machine, one after another."""

from collections.abc import Callable, Sequence

from counterpoint.errors import InputError
from counterpoint.launching.job import Job, is_missing
from counterpoint.launching.running import JobRunner
from counterpoint.records.progress import epochs_done
from counterpoint.storage.locks import is_locked
from counterpoint.watching import SILENT, Watcher


def run_here(
    jobs: Sequence[Job], *, should_stop: Callable[[], bool] = lambda: False, watcher: Watcher = SILENT
) -> None:
    """Run those of `jobs` that are not done, until `should_stop`. One that fails does not stop the others."""
    missing = [job for job in jobs if is_missing(job)]
    for number, job in enumerate(missing, 1):
        if should_stop():
            return
        if is_locked(job.desk):
            watcher.noted(f"{number} of {len(missing)}: {job.name} is run by another process")
            continue
        watcher.noted(f"{number} of {len(missing)}: {job.name}; its output goes to {job.log}")
        outcome = JobRunner(job, own_session=True).run(should_stop, _epochs_told(job, watcher))
        watcher.noted(f"{job.name}: {outcome}")


def _epochs_told(job: Job, watcher: Watcher) -> Callable[[], None]:
    """Tells the watcher about each new epoch. If the experiment sets steps, its number of epochs does not count."""
    told = -1

    def tell() -> None:
        nonlocal told
        try:
            done = epochs_done(job.folder)
        except InputError:  # the job's own process says what is wrong with the log
            return
        if job.experiment.steps is None and done != told:
            told = done
            watcher.counted(f"epochs of {job.name}", done, job.experiment.epochs)

    return tell
