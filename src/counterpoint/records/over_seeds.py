"""What `counterpoint compare` finds between experiments that were each trained with several seeds.

It is written where --out says. Every figure has its values, one per seed, so that the file can be read by itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from counterpoint.records.codec import Range
from counterpoint.records.compared import Real
from counterpoint.records.figures import Count
from counterpoint.records.images import MadeFrom, OutsideImages, Shift

Deviation = Annotated[float, Range(0, 1e6)]


@dataclass(frozen=True)
class FigureOverSeeds:
    """A figure of one experiment: its values in the order of the runs, their mean and their standard deviation."""

    mean: Real
    deviation: Deviation
    values: tuple[Real, ...]


@dataclass(frozen=True)
class SeedsDifference:
    """The first experiment's mean less the other's, with the 95 % interval over seeds."""

    ours: FigureOverSeeds
    other: FigureOverSeeds
    difference: Real
    deviation: Deviation
    """Of the difference between one training of each."""
    degrees_of_freedom: Annotated[float, Range(0, 1e6)]
    low: Real | None = None
    """None, as `high` is, where all seeds agree: nothing then says how far others would be apart."""
    high: Real | None = None
    by_seed: tuple[Real, ...] = ()
    """The difference of each pair of seeds, where there are pairs."""


SeedsDifferences = Mapping[str, SeedsDifference]
"""By the name of the figure, such as ece_width15_debiased. One that a run lacks is missing."""


@dataclass(frozen=True)
class ShiftOverSeeds:
    """On a set of shifted images that all runs were evaluated on."""

    shift: Shift
    differences: SeedsDifferences


@dataclass(frozen=True)
class OutsideOverSeeds:
    """Of the AUROC by confidence, on outside images that all runs were evaluated on. Higher is better."""

    images: OutsideImages
    auroc: SeedsDifference


@dataclass(frozen=True)
class TrainedRun:
    seed: Count
    run: str  # its folder, or its file among the results
    made_from: MadeFrom


@dataclass(frozen=True)
class TrainedExperiment:
    """An experiment with those of its runs that are compared, by ascending seed."""

    experiment: str
    place: str
    """What the runs were named by."""
    config: Mapping[str, Any]
    runs: tuple[TrainedRun, ...]
    without_results: tuple[str, ...] = ()
    """Its runs that were not evaluated yet, and are left out."""

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)


@dataclass(frozen=True)
class SeedsComparison:
    """The differences from one other experiment. A set of images is missing where not all runs have the same ones."""

    other: TrainedExperiment
    pairing: Literal["pairs of equal seeds", "two groups"]
    clean: SeedsDifferences = field(default_factory=dict)
    corrupted: SeedsDifferences = field(default_factory=dict)
    """Over all cells. Calibration errors are by corruption."""
    shifts: Mapping[str, ShiftOverSeeds] = field(default_factory=dict)
    """Other sets of shifted images, by name."""
    outside: Mapping[str, OutsideOverSeeds] = field(default_factory=dict)
    """Sets of outside images, by name."""


@dataclass(frozen=True)
class ComparedExperiments:
    """An experiment against others, over seeds."""

    ours: TrainedExperiment
    command: str
    finished: str
    against: tuple[SeedsComparison, ...]
