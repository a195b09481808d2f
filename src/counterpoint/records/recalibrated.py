"""recalibrated.json: what `counterpoint recalibrate` made of a run's confidences."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from counterpoint.records.codec import Range, Sized
from counterpoint.records.figures import Aggregate, AggregateFigures, Figures
from counterpoint.records.results import Images, MadeFrom

Temperature = Annotated[float, Range(1e-6, 1e6)]
TemperatureKind = Literal["before", "after", "per-member"]


@dataclass(frozen=True)
class FittedOn:
    """The validation images that the temperatures were fitted on, and whose logits of them."""

    images: Images
    run: str  # "this run", or the name of its twin
    weights: str | None


@dataclass(frozen=True)
class ScaledClean:
    ensemble: Figures
    members: Annotated[tuple[Figures, ...], Sized("members")]


@dataclass(frozen=True)
class ScaledCorrupted:
    ensemble: Mapping[Aggregate, AggregateFigures]
    members: Annotated[tuple[Mapping[Aggregate, AggregateFigures], ...], Sized("members")]


@dataclass(frozen=True)
class Scaled:
    """The figures with one kind of temperature. `temperatures` has one value, or one per member."""

    temperatures: tuple[Temperature, ...]
    clean: ScaledClean
    corrupted: ScaledCorrupted | None = None

    def problem(self) -> str:
        count, members = len(self.temperatures), len(self.clean.members)
        return "" if count in (1, members) else f"temperatures has {count} values, and must have 1 or {members}"


@dataclass(frozen=True)
class Recalibrated:
    """A run's figures with temperatures that were fitted on validation images."""

    made_from: MadeFrom
    command: str
    finished: str
    fitted_on: FittedOn
    clean_how: str
    corrupted_how: str
    ways: Mapping[TemperatureKind, Scaled]
