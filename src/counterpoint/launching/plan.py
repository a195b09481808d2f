"""Experiments × settings × seeds as jobs."""

import hashlib
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterpoint.config import Experiment, override
from counterpoint.errors import InputError
from counterpoint.experiments import find_experiment
from counterpoint.launching.job import Job
from counterpoint.model_names import is_function
from counterpoint.runs.folder import find_run, load_run

FindExperiment = Callable[[str | None, Sequence[str]], Experiment]
"""From a name and `key=value` assignments to the experiment."""
_LONGEST_VALUE, _LONGEST_NAME = 60, 200  # file systems end at 255 bytes


@dataclass(frozen=True)
class Sweep:
    """What is to be run."""

    experiments: Sequence[str | None]
    """Their names. On a user's own images they are recipes, and None is the one for photographs."""
    fixed: Sequence[str]
    """Each `key=value` holds for every run."""
    varied: Mapping[str, Sequence[str]]
    """The values that each key takes in turn. Every combination is run."""
    seeds: Sequence[int]
    evaluate: bool = True
    options: tuple[str, ...] = ()
    """What `train` and `evaluate` are both told, such as --device cpu."""
    processes: int = 1
    images: tuple[str, ...] = ()
    """What `train` is told about a user's own images: --images PATH, and perhaps --skip-bad."""
    images_title: str = ""
    """What these images are called."""


def parse_varied(assignments: Sequence[str]) -> dict[str, list[str]]:
    """The values of each key, from `key=value` once for each value. A value may therefore hold commas."""
    varied: dict[str, list[str]] = {}
    for assignment in assignments:
        key, equals, value = (part.strip() for part in assignment.partition("="))
        if not (key and equals and value):
            raise InputError(f"--vary {assignment}: it must be KEY=VALUE, such as --vary learning_rate=0.05")
        if key == "seed":
            raise InputError(f"--vary {assignment}: seeds have an option of their own, such as --seeds 0,1,2")
        if value in varied.setdefault(key, []):
            raise InputError(f"--vary {assignment} is given twice; give each value once")
        varied[key].append(value)
    return varied


def named_experiment(name: str | None, assignments: Sequence[str]) -> Experiment:
    """The experiment of that name with what the assignments change."""
    assert name is not None
    return override(find_experiment(name), assignments)


def make_jobs(sweep: Sweep, out: Path, find: FindExperiment = named_experiment) -> list[Job]:
    """A job for every combination, in the order of the experiments, their settings and the seeds.

    `find` gives the experiment that `train` will train.
    """
    _check_fixed(sweep)
    if out.exists() and not out.is_dir():
        raise InputError(f"{out} is a file, but a folder is needed there; give another --out")
    combinations = [
        [f"{key}={value}" for key, value in zip(sweep.varied, values, strict=True)]
        for values in itertools.product(*sweep.varied.values())
    ]
    jobs: list[Job] = []
    for name, combination in itertools.product(dict.fromkeys(sweep.experiments), combinations):
        experiment = _with_settings(find, name, [*sweep.fixed, *combination])
        jobs += [_make_job(sweep, out, name, combination, seed, experiment) for seed in sweep.seeds]
    _check_distinct(jobs)
    for job in filter(_has_readable_run, jobs):
        find_run(job.folder, job.experiment, seed=job.seed)  # raises if it is another run
    return jobs


def run_name(experiment: str, settings: Sequence[str], seed: int | None = None) -> str:
    """The name of a run's folder: the experiment, its settings, and the seed. Without a seed it is a folder for all.

    Characters that a file name cannot hold are replaced, and a hash is then added to keep names different.
    """
    parts = [experiment.replace("/", "-"), *(_file_name(part, _LONGEST_VALUE) for part in settings)]
    if seed is not None:
        parts.append(f"seed={seed}")
    return _file_name("__".join(parts), _LONGEST_NAME)


def _file_name(text: str, longest: int) -> str:
    safe = re.sub(r"[^\w.,+=~-]", "-", text, flags=re.ASCII)
    if safe == text and len(text) <= longest:
        return text
    return f"{safe[: longest - 9]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _make_job(
    sweep: Sweep, out: Path, name: str | None, varied: Sequence[str], seed: int, experiment: Experiment
) -> Job:
    place = run_name("/".join(filter(None, (sweep.images_title, name))), varied, seed)
    folder = str(out / place)
    what = (*([name] if name else []), *sweep.images)
    settings = itertools.chain.from_iterable(("--set", assignment) for assignment in (*sweep.fixed, *varied))
    commands = [("train", *what, "--out", folder, "--seed", str(seed), *settings, *sweep.options)]
    if sweep.evaluate:
        said = ("--model", experiment.model) if is_function(experiment.model) else ()
        commands.append(("evaluate", folder, *said, *sweep.options))
    results = out / place / "results.json" if sweep.evaluate else None
    return Job(place, out, experiment, seed, tuple(commands), results, sweep.processes)


def _with_settings(find: FindExperiment, name: str | None, assignments: Sequence[str]) -> Experiment:
    try:
        return find(name, assignments)
    except InputError as error:
        several = next((a for a in assignments if "," in a and str(error).startswith(a)), None)
        if several is None:
            raise
        key, _, values = several.partition("=")
        hint = " ".join(f"--vary {key}={value}" for value in values.split(",") if value)
        raise InputError(f"{error}; to run it with each of several values: {hint}") from None


def _has_readable_run(job: Job) -> bool:
    """A run that cannot be read is told by the job's state, and does not keep the other jobs from being run."""
    try:
        load_run(job.folder)
    except InputError:
        return False
    return True


def _check_fixed(sweep: Sweep) -> None:
    keys = [assignment.partition("=")[0].strip() for assignment in sweep.fixed]
    for key in keys:
        if key in sweep.varied:
            raise InputError(f"{key} is given with --set and with --vary; leave one of them out")
        if keys.count(key) > 1:
            raise InputError(f"--set {key} is given twice; --vary {key}=VALUE, once for each value, runs it with each")


def _check_distinct(jobs: Sequence[Job]) -> None:
    for one, other in itertools.combinations(jobs, 2):
        if one.seed == other.seed and one.experiment == other.experiment:
            raise InputError(f"{one.name} and {other.name} are the same run; leave one of their values out")
        if one.name == other.name:
            raise InputError(f"two runs would have the folder {one.folder}; run them in sweeps with other --out")
