"""Every experiment by name. A module holds one table of the paper; a row is a value in it."""

from collections.abc import Sequence

from counterpoint.config import Experiment
from counterpoint.errors import InputError, unknown
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.experiments.table1 import TABLE1
from counterpoint.experiments.table2 import TABLE2
from counterpoint.experiments.table3 import TABLE3

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in sorted((*QUICKSTART, *TABLE2, *TABLE3, *TABLE1), key=lambda e: e.dataset)
}


def find_experiment(name: str) -> Experiment:
    """The experiment called `name`, or an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def select_experiments(words: Sequence[str]) -> list[Experiment]:
    """The experiments whose names hold all `words`. A word that is a whole part of a name, such as cifar10, selects
    that part; any other matches anywhere."""
    parts = {part for name in EXPERIMENTS for part in name.split("/")}

    def matches(name: str, word: str) -> bool:
        return word in (name.split("/") if word in parts else name)

    found = [e for name, e in EXPERIMENTS.items() if all(matches(name, word.lower()) for word in words)]
    if not found:
        raise InputError(
            f"no experiment has {' and '.join(words)} in its name; `counterpoint experiments` lists them all"
        )
    return found
