"""Jobs on this machine, one after another."""

from collections.abc import Callable, Sequence

from counterpoint.errors import InputError
from counterpoint.launching.job import Job, is_missing, is_run, read_failure
from counterpoint.launching.running import JobRunner
from counterpoint.records.progress import epochs_done, is_trained
from counterpoint.watching import SILENT, Watcher


def run_here(
    jobs: Sequence[Job], *, should_stop: Callable[[], bool] = lambda: False, watcher: Watcher = SILENT
) -> None:
    """Run those of `jobs` that are not done, until `should_stop`. One that fails does not stop the others."""
    missing = [job for job in jobs if is_missing(job)]
    for number, job in enumerate(missing, 1):
        if should_stop():
            return
        if is_run(job):
            watcher.noted(f"{number} of {len(missing)}: {job.name} is run by another process")
            continue
        watcher.noted(f"{number} of {len(missing)}: {job.name}; its output goes to {job.log}")
        outcome = JobRunner(job, own_session=True).run(should_stop, _progress_told(job, watcher))
        reason = f": {read_failure(job)}" if outcome == "failed" else ""
        watcher.noted(f"{job.name}: {outcome}{reason}")


def _progress_told(job: Job, watcher: Watcher) -> Callable[[], None]:
    """Tells the watcher about each new epoch, and when the training is done but the evaluation is not.

    If the experiment sets steps, its number of epochs does not count.
    """
    told, is_evaluating = -1, False

    def tell() -> None:
        nonlocal told, is_evaluating
        try:
            done, trained = epochs_done(job.folder), is_trained(job.folder)
        except InputError:  # the job's own process says what is wrong with its files
            return
        if job.experiment.steps is None and done != told:
            told = done
            watcher.counted(f"epochs of {job.name}", done, job.experiment.epochs)
        if trained and job.results is not None and not is_evaluating:
            is_evaluating = True
            watcher.noted(f"{job.name} is trained, and is evaluated now")

    return tell
