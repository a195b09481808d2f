"""What a Slurm cluster says about the jobs that were submitted to it.

submitit asks sacct alone, which knows nothing where a cluster keeps no accounts, and is late for new jobs. squeue knows
every job that waits or runs. sacct is asked for those that have left the queue.
"""

import subprocess
from collections.abc import Sequence

from counterpoint.errors import InputError
from counterpoint.launching.job import Job, read_number

_SQUEUE = ("squeue", "--noheader", "--me", "--format=%i|%T")
_SACCT = ("sacct", "--noheader", "--parsable2", "--allocations", "--format=JobID,State")
_SECONDS = 60


def queue_states(jobs: Sequence[Job]) -> dict[str, str]:
    """The cluster's word for the state of each job that was submitted, by the job's name. It may not know a job."""
    numbers = {job.name: number for job in jobs if (number := _number(job))}
    if not numbers:
        return {}
    states = _ask(_SQUEUE)
    if any(number not in states for number in numbers.values()):
        states = _ask((*_SACCT, f"--jobs={','.join(numbers.values())}")) | states
    return {name: states[number] for name, number in numbers.items() if number in states}


def _number(job: Job) -> str | None:
    """The number of a job that was submitted. If the file that holds it is damaged, the job's state says so."""
    try:
        return read_number(job) if job.submission.exists() else None
    except InputError:
        return None


def parse_states(text: str) -> dict[str, str]:
    """The state of each job, by its number. "CANCELLED by 1000" is CANCELLED."""
    pairs = (line.partition("|") for line in text.splitlines())
    return {number.strip(): state.split()[0].rstrip("+") for number, _, state in pairs if state.strip()}


def _ask(command: Sequence[str]) -> dict[str, str]:
    """What the command lists; nothing if the command is missing or does not answer."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return {}
    return parse_states(done.stdout)
