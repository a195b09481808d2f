"""A job: one run, the commands that it needs, and where its files are. Nothing here imports torch."""

from dataclasses import dataclass
from pathlib import Path

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.experiments.hashes import read_results_of
from counterpoint.records.progress import is_trained
from counterpoint.records.results import Results
from counterpoint.runs.folder import check_content, find_run
from counterpoint.storage.files import read_json
from counterpoint.storage.locks import is_locked

DESKS = ".jobs"


@dataclass(frozen=True)
class Job:
    """One run of an experiment with one seed."""

    name: str
    """The path of the run's folder below `runs`."""
    runs: Path
    experiment: Experiment
    seed: int
    commands: tuple[tuple[str, ...], ...]
    """The arguments of `counterpoint`, once for each command that the run takes. They may be called again."""
    results: Path | None
    """The file of results that the commands make; None if they only train."""
    processes: int = 1
    """How many processes share the work of a command, each with a GPU of its own."""

    @property
    def folder(self) -> Path:
        return self.runs / self.name

    @property
    def desk(self) -> Path:
        """Where the launcher's files are. A run's own folder must be empty when its training begins."""
        return self.runs / DESKS / self.name

    @property
    def log(self) -> Path:
        """What the commands print."""
        return self.desk / "log.txt"

    @property
    def failure(self) -> Path:
        """Why the job failed when it was last run. There is no such file if it did not."""
        return self.desk / "failed.json"

    @property
    def submission(self) -> Path:
        """Which job of a cluster it is."""
        return self.desk / "submitted.json"


def read_job_results(job: Job) -> Results | None:
    """The results of exactly this experiment and seed; None as long as there are none."""
    if job.results is None:
        return None
    return read_results_of(job.results, job.experiment, job.seed, "move it away, and --run makes it again")


def check_files(job: Job) -> None:
    """Raise if the job's files cannot be read, or its folder holds something else than its run."""
    if job.submission.exists():
        read_number(job)
    if job.results is not None and job.results.exists() and not job.results.is_relative_to(job.folder):
        return  # a row of the paper that has a result needs its folder no more
    try:
        check_content(job.folder)
        find_run(job.folder, job.experiment, seed=job.seed)
    except InputError as error:
        raise InputError(f"{error}. If you move {job.folder} away, --run begins the run again") from None


def is_missing(job: Job) -> bool:
    """Whether the job can be run, and is not done. One whose files cannot be read has failed, as its state says."""
    try:
        check_files(job)
        return not is_done(job)
    except (InputError, OSError):
        return False


def is_done(job: Job) -> bool:
    """Whether nothing is left to do."""
    return is_trained(job.folder) if job.results is None else read_job_results(job) is not None


def is_run(job: Job) -> bool:
    """Whether a process runs the job now, or trains or evaluates in its folder.

    That may go on although the process that ran the job was killed. Its folder is only looked at where no
    process runs the job: a look at the moment when a training begins would keep it from beginning.
    """
    return is_locked(job.desk) or is_locked(job.folder)


def read_failure(job: Job) -> str:
    """Why the job failed."""
    return _read_field(job.failure, "reason")


def read_number(job: Job) -> str:
    """The job's number on the cluster."""
    return _read_field(job.submission, "id")


def _read_field(file: Path, key: str) -> str:
    values = read_json(file)
    if not isinstance(values, dict) or key not in values:
        raise InputError(f"{file} has no {key!r}; remove it, and --run runs what is not finished")
    return str(values[key])
