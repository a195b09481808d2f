"""The trainings of one experiment: evaluated runs that differ in their seed alone, found by a name for all of them.

The name is a folder that holds them (results/cifar100/single), or what they are called without their seeds:
results/cifar100/single/paper for paper-0.json and paper-1.json, s/single__width=4 for the runs of a sweep.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from counterpoint.errors import InputError, listed, some
from counterpoint.records.files import RESULTS, read_results
from counterpoint.records.results import Results
from counterpoint.records.settings import differing, settings_of
from counterpoint.storage.folders import quoted

_SEED = r"(?:-|__seed=)\d+"
_NAME = re.compile(rf"(?P<name>.+?){_SEED}(?:\.json)?")


@dataclass(frozen=True)
class Trainings:
    """Evaluated runs of one experiment, by ascending seed."""

    place: Path
    """What they were named by."""
    runs: Mapping[int, Path]
    results: Mapping[int, Results]
    without_results: tuple[Path, ...]
    """Runs that are not evaluated yet, and so are left out."""

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(self.runs)

    @property
    def first(self) -> Results:
        return next(iter(self.results.values()))


def find_trainings(place: Path) -> list[Path]:
    """The runs that `place` is a name for, evaluated or not. None if it is a run itself, or nothing."""
    if place.is_file() or _is_run_folder(place):
        return []
    if place.is_dir():
        return [path for path in sorted(place.iterdir()) if _is_run_folder(path) or _is_row(path)]
    # A shell completes a name up to the seed. What it adds then belongs to the seed.
    name = re.escape(re.sub(r"(-|__seed=)$", "", place.name))
    beside = sorted(place.parent.iterdir()) if place.parent.is_dir() else []
    named = [path for path in beside if re.fullmatch(rf"{name}{_SEED}(\.json)?", path.name)]
    return [path for path in named if _is_run_folder(path) or path.is_file()]


def read_trainings(place: Path) -> Trainings:
    """The evaluated runs that `place` is a name for, checked to differ in their seed alone."""
    found = find_trainings(place)
    if not found:
        raise InputError(_why_none(place))
    files = {path: path / RESULTS if path.is_dir() else path for path in found}
    results = {path: read_results(file) for path, file in files.items() if file.exists()}
    if not results:
        raise InputError(
            f"{place}: none of its {len(found)} runs is evaluated yet; `counterpoint evaluate RUN` does it"
        )
    if given := next((path for path, one in results.items() if one.seed is None), None):
        raise InputError(f"{given} has predictions from elsewhere, whose seed is not known; give runs trained here")
    _check_settings(place, results)
    by_seed: dict[int, Path] = {}
    for path, one in results.items():
        if (same := by_seed.setdefault(one.trained.seed, path)) != path:
            raise InputError(f"{same} and {path} both have seed {one.seed}; move one of them away")
    runs = dict(sorted(by_seed.items()))
    left_out = tuple(path for path in found if path not in results)
    return Trainings(place, runs, {seed: results[path] for seed, path in runs.items()}, left_out)


def _is_run_folder(path: Path) -> bool:
    return (path / RESULTS).is_file() or (path / "run.json").is_file()


def _is_row(path: Path) -> bool:
    """Whether it may be a row's result: a folder can hold other files too."""
    return path.is_file() and path.suffix == ".json" and _NAME.fullmatch(path.name) is not None


def _why_none(place: Path) -> str:
    if place.is_file() or _is_run_folder(place):
        return (
            f"{place} is one run, and a comparison over seeds needs several of each experiment; give the folder that "
            "holds them, or their name without the seed"
        )
    if place.is_dir():
        return f"{place} holds no runs; give the folder of an experiment's runs"
    return f"{place} does not exist, and no run is called {place.name}-SEED or {place.name}__seed=SEED"


def _check_settings(place: Path, results: Mapping[Path, Results]) -> None:
    settings = [settings_of(one.config) for one in results.values()]
    if not (keys := differing(settings)):
        return
    other = next(path for path, one in zip(results, settings, strict=True) if differing([settings[0], one]))
    raise InputError(
        f"{next(iter(results))} and {other} differ in more than the seed: in {some(keys)}. {_advice(place, [*results])}"
    )


def _advice(place: Path, runs: Sequence[Path]) -> str:
    """The names that runs in one folder have without their seeds."""
    names = {found["name"]: None for path in runs if (found := _NAME.fullmatch(path.name))}
    if not place.is_dir() or len(names) < 2:
        return "Give runs of one experiment; those of other settings need a folder of their own"
    return f"Name the runs of one experiment: {listed([quoted(place / name) for name in [*names][:3]])} are such names"
