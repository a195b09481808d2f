"""Compared runs by their names on the page."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterpoint.records.compared import Comparison
from counterpoint.report.run import ReportedRun


@dataclass(frozen=True)
class ComparedPair:
    """A run and another one, with the differences that `counterpoint compare` found between them."""

    run: ReportedRun
    other: Comparison
    name: str  # of the other run
    other_run: ReportedRun | None  # where it is on the page

    @property
    def label(self) -> str:
        return f"{self.run.label} − {self.name}"


def compared_pairs(runs: Sequence[ReportedRun]) -> Iterator[ComparedPair]:
    for run in runs:
        if run.evaluated.compared:
            for other in run.evaluated.compared.against:
                found = next((one for one in runs if _is(one, other)), None)
                yield ComparedPair(run, other, found.label if found else _name(other, runs), found)


def _is(run: ReportedRun, other: Comparison) -> bool:
    results = run.results
    return (results.experiment, results.seed, results.made_from) == (other.experiment, other.seed, other.made_from)


def _name(other: Comparison, runs: Sequence[ReportedRun]) -> str:
    """The seed tells it from runs on the page that have its name."""
    if other.seed is None or all(run.results.experiment != other.experiment for run in runs):
        return other.experiment
    return f"{other.experiment} (seed {other.seed})"
