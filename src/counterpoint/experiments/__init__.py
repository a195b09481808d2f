"""Every experiment by name."""

from collections.abc import Mapping, Sequence
from typing import Any

from counterpoint.config import Experiment
from counterpoint.errors import InputError, unknown
from counterpoint.experiments.hashes import config_hash, saved_hash
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.experiments.rows import ROWS
from counterpoint.storage.folders import quoted

__all__ = ["EXPERIMENTS", "config_hash", "find_experiment", "is_row", "select_experiments"]

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in sorted((*QUICKSTART, *ROWS), key=lambda e: e.dataset)}


def find_experiment(name: str) -> Experiment:
    """The experiment called `name`. The error for an unknown name suggests similar ones.

    >>> from counterpoint.experiments import find_experiment
    >>> find_experiment("cifar10/am-bern-0.875").policy.augmix.severity
    (1.0, 2.0, 3.0, 4.0)
    """
    if name in EXPERIMENTS:
        return EXPERIMENTS[name]
    holding = [known for known in EXPERIMENTS if name.lower() in known]
    if not holding:
        raise unknown("experiment", name, EXPERIMENTS, listed_by="counterpoint experiments")
    if len(holding) > 3:
        raise InputError(
            f"unknown experiment {name!r}; `counterpoint experiments {quoted(name)}` lists the "
            "experiments with that text in their name"
        )
    raise InputError(f"unknown experiment {name!r}; did you mean {' or '.join(map(repr, holding))}?")


def select_experiments(words: Sequence[str]) -> list[Experiment]:
    """The experiments whose names match all `words`.

    A word that is a whole name matches only that name. Slashes divide a name into parts. A word that equals a part of
    some name matches the parts that are equal to it, or that continue it with a dash: cifar10 does not match cifar100,
    and single matches single-am-beta. Any other word matches anywhere in a name.

    >>> from counterpoint.experiments import select_experiments
    >>> [experiment.name for experiment in select_experiments(["cifar10", "be+adv"])]
    ['cifar10/be+adv', 'cifar10/be+adv-not-diverse', 'cifar10/be+adv-1.0']
    """
    parts = {part for name in EXPERIMENTS for part in name.split("/")}

    def matches(name: str, word: str) -> bool:
        if word in EXPERIMENTS:
            return name == word
        if word in parts:
            return any(f"{part}-".startswith(f"{word}-") for part in name.split("/"))
        return word in name

    found = [e for name, e in EXPERIMENTS.items() if all(matches(name, word.lower()) for word in words)]
    if not found:
        for word in words:
            if not any(matches(name, word.lower()) for name in EXPERIMENTS):
                raise unknown("word in an experiment's name", word, sorted(parts), "counterpoint experiments")
        raise InputError(
            f"no experiment has {' and '.join(map(repr, words))} in its name; `counterpoint experiments` lists them all"
        )
    return found


def is_row(config: Mapping[str, Any]) -> bool:
    """Whether a result's configuration is that of the experiment whose name it has: not shortened, nothing changed.

    >>> from counterpoint.config import override, to_dict
    >>> from counterpoint.experiments import find_experiment, is_row
    >>> row = find_experiment("cifar10/single")
    >>> is_row(to_dict(row)), is_row(to_dict(override(row, ["epochs=5"])))
    (True, False)
    """
    row = EXPERIMENTS.get(str(config.get("name")))
    return row is not None and saved_hash(config) == config_hash(row)
