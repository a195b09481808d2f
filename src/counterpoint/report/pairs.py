"""Compared runs by their names on the page, and the differences between them."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterpoint.records.compared import CalibrationDifferences, Comparison, Difference, MeanDifferences
from counterpoint.records.images import MadeFrom
from counterpoint.records.results import Results
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


def compared_pairs(runs: Sequence[ReportedRun]) -> list[ComparedPair]:
    """Each two runs once, though `compare` may have been given both ways round: then as it found more."""
    others = [other for run in runs if run.evaluated.compared for other in run.evaluated.compared.against]
    known: list[Results | Comparison] = [*(run.results for run in runs), *others]
    pairs: dict[frozenset[str], ComparedPair] = {}
    for run in runs:
        for other in run.evaluated.compared.against if run.evaluated.compared else ():
            found = next((one for one in runs if _identity(one.results) == _identity(other)), None)
            pair = ComparedPair(run, other, found.label if found else _name(other, known), found)
            both = frozenset((run.label, pair.name))
            if both not in pairs or _sets(other) > _sets(pairs[both].other):
                pairs[both] = pair
    return list(pairs.values())


def known_differences(*parts: MeanDifferences | CalibrationDifferences | None) -> dict[str, Difference]:
    """Those that there are, by the name of their figure."""
    return {key: found for part in parts if part for key, found in vars(part).items() if found is not None}


def differences_on(other: Comparison, suite: str) -> dict[str, Difference]:
    """On the images of a suite those of means over cells, and of calibration errors by corruption.

    On clean images where `suite` is empty.
    """
    if not suite:
        return known_differences(other.clean)
    found = other.on(suite)
    return known_differences(found.mean, found.by_corruption) if found else {}


def _sets(other: Comparison) -> int:
    """How many sets of images both runs have."""
    return bool(other.clean) + bool(other.corrupted) + len(other.shifts) + len(other.outside)


def _identity(one: Results | Comparison) -> tuple[str, int | None, MadeFrom]:
    return one.experiment, one.seed, one.made_from


def _name(other: Comparison, known: Sequence[Results | Comparison]) -> str:
    """The seed tells it from others that have its name, or else its folder does."""
    same_name = [one for one in known if one.experiment == other.experiment and _identity(one) != _identity(other)]
    if not same_name:
        return other.experiment
    if other.seed is None or other.seed in [one.seed for one in same_name]:
        return f"{other.experiment} ({other.run})"
    return f"{other.experiment} (seed {other.seed})"
