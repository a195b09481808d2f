"""The state of each job, from its run folder, its launcher's files and, for submitted jobs, the cluster's queue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from counterpoint.errors import InputError
from counterpoint.launching.job import Job, check_files, is_done, is_run, read_failure, read_job_results
from counterpoint.records.progress import epochs_done, is_trained
from counterpoint.records.results import Results

Kind = Literal["waiting", "queued", "running", "interrupted", "finished", "failed"]
_WAITS_IN_QUEUE = {"PENDING", "READY", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "PREEMPTED", "SUSPENDED"}
_RUNS_IN_QUEUE = {"RUNNING", "COMPLETING", "RESIZING", "STAGE_OUT"}
_ENDED_BADLY = {"BOOT_FAIL", "CANCELLED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT"}


@dataclass(frozen=True)
class State:
    """A job's state, in one word and with details for a person."""

    job: Job
    kind: Kind
    detail: str = ""
    """How far it is, or why it failed."""
    results: Results | None = None


def job_states(jobs: Sequence[Job], queue: Mapping[str, str]) -> list[State]:
    """The states of `jobs`. `queue` has the cluster's word for those that it knows, by their names."""
    return [_state(job, queue.get(job.name, "")) for job in jobs]


def _state(job: Job, queued: str) -> State:
    try:
        return _read_state(job, queued)
    except (InputError, OSError) as error:  # a file that cannot be read fails its run, not the others
        return State(job, "failed", str(error))


def _read_state(job: Job, queued: str) -> State:
    check_files(job)
    if is_done(job):
        return State(job, "finished", results=read_job_results(job))
    far = _how_far(job)
    if queued in _RUNS_IN_QUEUE or is_run(job):
        return State(job, "running", far or "starting")
    if queued in _WAITS_IN_QUEUE:
        return State(job, "queued", ", ".join(filter(None, (queued.lower(), far))))
    if job.failure.exists():
        return State(job, "failed", read_failure(job))
    if queued in _ENDED_BADLY:
        return State(job, "failed", f"the cluster says {queued}")
    return State(job, "interrupted", far) if far else State(job, "waiting")


def _how_far(job: Job) -> str:
    """How far the run in the folder is; empty if it was not begun."""
    if not (job.folder / "run.json").exists():
        return ""
    if is_trained(job.folder):
        return "trained, not evaluated"
    done = epochs_done(job.folder)
    return f"epoch {done} of {job.experiment.epochs}" if job.experiment.steps is None else "training"
