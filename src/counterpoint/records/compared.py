"""compared.json: the differences that `counterpoint compare` found between a run and others."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar

from counterpoint.records.codec import Range
from counterpoint.records.figures import Count
from counterpoint.records.images import MadeFrom, OutsideImages, Shift

Of = TypeVar("Of")
Real = Annotated[float, Range(-1e6, 1e6)]


@dataclass(frozen=True)
class Difference:
    """This run's figure less the other's, with the 95 % interval over images."""

    difference: Real
    low: Real
    high: Real


@dataclass(frozen=True)
class MeanDifferences:
    error: Difference
    nll: Difference
    brier: Difference


@dataclass(frozen=True)
class CalibrationDifferences:
    """Of debiased calibration errors. One is missing where its interval would not hold what it promises."""

    ece_width15_debiased: Difference | None = None
    ece_rms_width15_debiased: Difference | None = None
    ece_mass15_debiased: Difference | None = None
    ece_rms_mass15_debiased: Difference | None = None


@dataclass(frozen=True)
class CleanDifferences(CalibrationDifferences, MeanDifferences):
    """Of all figures on one set of images."""


@dataclass(frozen=True)
class CorruptedDifferences:
    """Of each image's mean over the cells, in all and at each severity, and of the calibration errors by corruption."""

    mean: MeanDifferences
    severities: tuple[MeanDifferences, ...]  # none from condensed scores
    by_corruption: CalibrationDifferences


@dataclass(frozen=True)
class ShiftDifferences:
    """On a set of shifted images that both runs were evaluated on."""

    shift: Shift
    differences: CorruptedDifferences


@dataclass(frozen=True)
class OutsideDifference:
    """Of the AUROC by confidence, on outside images that both runs were evaluated on. Higher is better."""

    images: OutsideImages
    auroc: Difference


@dataclass(frozen=True)
class Comparison:
    """The differences from one other run. Either part is None where the two have no such images in common."""

    experiment: str
    seed: Count | None  # None where the training is not known
    run: str  # the other's folder, or its file among the results
    made_from: MadeFrom
    clean: CleanDifferences | None
    corrupted: CorruptedDifferences | None
    shifts: Mapping[str, ShiftDifferences] = field(default_factory=dict)
    """Other sets of shifted images, by name."""
    outside: Mapping[str, OutsideDifference] = field(default_factory=dict)
    """Sets of outside images, by name."""
    scores: Literal["whole", "condensed"] = "whole"
    """Condensed where one of the two had no others. The intervals by corruption are then to first order."""

    def on(self, suite: str) -> CorruptedDifferences | None:
        """The differences on a set of shifted images, if both runs have it."""
        if suite == "corrupted":
            return self.corrupted
        return self.shifts[suite].differences if suite in self.shifts else None

    @property
    def called(self) -> str:
        return _called(self.experiment, self.seed)


@dataclass(frozen=True)
class Compared:
    """A run against others."""

    experiment: str
    seed: Count | None
    made_from: MadeFrom
    command: str
    finished: str
    against: tuple[Comparison, ...]

    @property
    def called(self) -> str:
        return _called(self.experiment, self.seed)

    @property
    def checked_on(self) -> Mapping[str, Shift]:
        return {name: one.shift for other in self.against for name, one in other.shifts.items()}

    @property
    def outside(self) -> Mapping[str, OutsideImages]:
        """All sets of outside images that a difference is of, by name."""
        return {name: one.images for other in self.against for name, one in other.outside.items()}

    def without(self, shifts: Collection[str], outside: Collection[str]) -> "Compared":
        """Without the differences on these sets of images."""
        against = (
            replace(other, shifts=all_but(shifts, other.shifts), outside=all_but(outside, other.outside))
            for other in self.against
        )
        return replace(self, against=tuple(against))


def all_but(names: Collection[str], sets: Mapping[str, Of]) -> dict[str, Of]:
    """What is known of each set of images, but of those with these names."""
    return {name: one for name, one in sets.items() if name not in names}


def with_folder(called: str, folder: str) -> str:
    """A run's name with its folder, unless the name is the folder's already."""
    return called if folder == called else f"{called} ({folder})"


def _called(experiment: str, seed: int | None) -> str:
    return experiment if seed is None else f"{experiment}, seed {seed}"
