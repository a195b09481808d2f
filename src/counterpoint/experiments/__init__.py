"""Every experiment by name. A module holds one table of the paper; a row is a value in it."""

from counterpoint.config import Experiment
from counterpoint.errors import unknown
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.experiments.table1 import TABLE1
from counterpoint.experiments.table2 import TABLE2
from counterpoint.experiments.table3 import TABLE3

EXPERIMENTS: dict[str, Experiment] = {e.name: e for e in (*QUICKSTART, *TABLE1, *TABLE2, *TABLE3)}


def find_experiment(name: str) -> Experiment:
    """The experiment called `name`, or an error that suggests the nearest."""
    if name not in EXPERIMENTS:
        raise unknown("experiment", name, EXPERIMENTS)
    return EXPERIMENTS[name]
