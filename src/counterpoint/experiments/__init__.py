"""Every experiment by name. A module holds one table of the paper; a row is a value in it."""

from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.config import Experiment, from_dict
from counterpoint.errors import InputError, unknown
from counterpoint.experiments.hashes import config_hash
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.experiments.table1 import TABLE1
from counterpoint.experiments.table2 import TABLE2
from counterpoint.experiments.table3 import TABLE3

__all__ = ["EXPERIMENTS", "config_hash", "find_experiment", "is_row", "select_experiments"]

EXPERIMENTS: dict[str, Experiment] = {
    e.name: e for e in sorted((*QUICKSTART, *TABLE2, *TABLE3, *TABLE1), key=lambda e: e.dataset)
}


def find_experiment(name: str) -> Experiment:
    """The experiment called `name`, or an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]


def select_experiments(words: Sequence[str]) -> list[Experiment]:
    """The experiments whose names hold all `words`. A word that is a whole name, or a whole part of one such as
    cifar10, selects that; any other matches anywhere."""
    whole = {word for name in EXPERIMENTS for word in _whole_words(name)}

    def matches(name: str, word: str) -> bool:
        return word in (_whole_words(name) if word in whole else name)

    found = [e for name, e in EXPERIMENTS.items() if all(matches(name, word.lower()) for word in words)]
    if not found:
        raise InputError(
            f"no experiment has {' and '.join(words)} in its name; `counterpoint experiments` lists them all"
        )
    return found


def is_row(config: Mapping[str, Any]) -> bool:
    """Whether a result's configuration is that of the experiment whose name it has: not shortened, nothing changed."""
    try:
        experiment = from_dict(config)
    except InputError:
        return False
    row = EXPERIMENTS.get(experiment.name)
    return row is not None and config_hash(experiment) == config_hash(row)


def _whole_words(name: str) -> list[str]:
    return [name, *name.split("/")]
