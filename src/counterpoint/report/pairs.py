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
    """Each two runs once, though `compare` may have been given both ways round."""
    seen: list[ComparedPair] = []
    for run in runs:
        for other in run.evaluated.compared.against if run.evaluated.compared else ():
            found = next((one for one in runs if _is(one, other)), None)
            pair = ComparedPair(run, other, found.label if found else _name(other, runs), found)
            if not any(_mirrors(pair, earlier) for earlier in seen):
                seen.append(pair)
                yield pair


def _mirrors(pair: ComparedPair, earlier: ComparedPair) -> bool:
    """Whether the earlier pair is the same two runs the other way round, on at least the same images."""
    is_reverse = pair.run is earlier.other_run and pair.other_run is earlier.run
    return is_reverse and _sets(pair.other) <= _sets(earlier.other)


def _sets(other: Comparison) -> set[str]:
    ours = {"clean": other.clean, "corrupted": other.corrupted}
    return {name for name, found in ours.items() if found} | set(other.shifts)


def _is(run: ReportedRun, other: Comparison) -> bool:
    results = run.results
    return (results.experiment, results.seed, results.made_from) == (other.experiment, other.seed, other.made_from)


def _name(other: Comparison, runs: Sequence[ReportedRun]) -> str:
    """The seed tells it from runs on the page that have its name; where that is theirs too, its folder does."""
    seeds = [run.results.seed for run in runs if run.results.experiment == other.experiment]
    if not seeds:
        return other.experiment
    told_by_seed = other.seed is not None and other.seed not in seeds
    return f"{other.experiment} ({f'seed {other.seed}' if told_by_seed else other.run})"
