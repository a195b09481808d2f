"""Jobs on a cluster, through submitit: one for each run, requeued when its node is taken away or its time is over."""

import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from counterpoint.errors import InputError
from counterpoint.launching.job import Job, is_missing, read_failure
from counterpoint.launching.queue import queue_states
from counterpoint.launching.running import JobRunner
from counterpoint.launching.states import job_states
from counterpoint.storage.files import write_json

Cluster = Literal["slurm", "local"]
"""`local` is submitit's own stand-in for a cluster, for tests."""
SECONDS_TO_END = 60  # for a step and a checkpoint
_SIGNAL_DELAY_SECONDS = 90  # the cluster's signal comes so long before it ends a job
_PAUSE_SECONDS = 60.0  # a cluster asks all processes of a job to end, and kills them half a minute later
_MOST_TIMEOUTS = 100


@dataclass(frozen=True)
class Resources:
    """What each job asks the cluster for."""

    partition: str | None = None
    gpus: int = 1
    minutes: int = 240
    """A job that needs longer is requeued, and goes on from its checkpoint."""
    sbatch: Mapping[str, str] = field(default_factory=dict)
    """Other options of sbatch by their long names."""


class ClusterJob:
    """What submitit carries to a node. When the node is taken away, submitit asks it for its `checkpoint`."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._runner = JobRunner(job, pause=_PAUSE_SECONDS)

    def __call__(self) -> None:
        signal.signal(signal.SIGTERM, self._warn)  # submitit only logs it
        if self._runner.run() == "failed":
            # The cluster then says FAILED as well.
            raise RuntimeError(read_failure(self.job))

    def checkpoint(self) -> Any:
        """End the process with a checkpoint of its own; what is submitted anew goes on from there."""
        self._runner.end(SECONDS_TO_END)
        return _submitit().helpers.DelayedSubmission(ClusterJob(self.job))

    def _warn(self, *_: object) -> None:
        self._runner.warned = True

    def __reduce__(self) -> tuple[type["ClusterJob"], tuple[Job]]:
        return ClusterJob, (self.job,)


def submit_missing(jobs: Sequence[Job], resources: Resources) -> None:
    """Submit those of `jobs` that are not done and neither wait nor run already."""
    _submitit()
    if shutil.which("sbatch") is None:
        raise InputError(
            "sbatch was not found on this machine, so --launcher slurm cannot submit jobs; give the command where "
            "Slurm is installed, or leave --launcher out to run the jobs on this machine, one after another"
        )
    states = job_states(jobs, queue_states(jobs))
    idle = [state.job for state in states if state.kind not in ("finished", "queued", "running")]
    submit([job for job in idle if is_missing(job)], resources)


def submit(jobs: Sequence[Job], resources: Resources, cluster: Cluster = "slurm") -> list[Any]:
    """Submit each job, and keep its number on the cluster. What comes back are submitit's handles."""
    submitit, handles = _submitit(), []
    for job in jobs:
        executor = submitit.AutoExecutor(job.desk / "submitit", cluster, slurm_max_num_timeout=_MOST_TIMEOUTS)
        executor.update_parameters(**_parameters(job, resources))
        job.failure.unlink(missing_ok=True)
        try:
            handle = executor.submit(ClusterJob(job))
        except submitit.core.utils.FailedJobError as error:
            raise InputError(f"{job.name} was not submitted: {str(error).strip()}") from None
        write_json(job.submission, {"id": handle.job_id})
        handles.append(handle)
    return handles


def _parameters(job: Job, resources: Resources) -> dict[str, Any]:
    parameters: dict[str, Any] = {
        "name": job.name.replace("/", "-"),
        "timeout_min": resources.minutes,
        "slurm_signal_delay_s": _SIGNAL_DELAY_SECONDS,
        "slurm_additional_parameters": {"requeue": True, **resources.sbatch},
    }
    if resources.partition is not None:
        parameters["slurm_partition"] = resources.partition
    if resources.gpus:
        parameters["gpus_per_node"] = resources.gpus
    return parameters


def _submitit() -> Any:
    try:
        import submitit
    except ModuleNotFoundError:
        raise InputError(
            "--launcher slurm needs submitit, which is not installed; pip install 'counterpoint[slurm]'"
        ) from None
    return submitit
