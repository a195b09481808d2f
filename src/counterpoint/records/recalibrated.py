"""recalibrated.json: what `counterpoint recalibrate` made of a run's confidences."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from counterpoint.records.codec import Range, Sized
from counterpoint.records.compared import (
    CalibrationDifferences,
    CleanDifferences,
    CorruptedDifferences,
    Difference,
    all_but,
)
from counterpoint.records.figures import Aggregate, AggregateFigures, Count, Figures, Fraction, Nats
from counterpoint.records.images import Images, MadeFrom, OutsideImages, Shift

Acts = Literal["before", "after", "per-member"]
Signal = Literal["entropy", "disagreement"]
FitImages = Literal["clean", "shifted"]
Care = Literal["clean", "both", "shift"]


@dataclass(frozen=True)
class Parameter:
    """A fitted number, with its standard error over images. None for a slope that is held at the end of its range."""

    value: Annotated[float, Range(-100, 100)]  # its exponential is shown
    standard_error: Annotated[float, Range(0, 1e6)] | None = None


@dataclass(frozen=True)
class Slope:
    """How much log T rises with a signal."""

    signal: Signal
    slope: Parameter


@dataclass(frozen=True)
class Recalibration:
    """How logits become probabilities: log T = log temperature + Σ slope · signal, for each image.

    There is one log temperature, or one per member.
    """

    acts: Acts
    fitted_on: FitImages
    log_temperatures: tuple[Parameter, ...]
    slopes: tuple[Slope, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """A recalibration as the choice saw it: NLL on held-out images, under corruptions that it was not fitted on."""

    name: str
    parameters: Count
    clean: Nats
    shifted: Mapping[str, Nats]
    score: Nats
    above_best: Difference


@dataclass(frozen=True)
class Choice:
    """Which recalibration was chosen, what the user cares for, and the table of all candidates."""

    chosen: str
    care: Care
    images: Count
    candidates: tuple[Candidate, ...]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class FittedOn:
    """The validation images that were fitted on, clean and under shift, and whose logits of them."""

    images: Images
    shift: Shift | None
    run: str  # "this run", or the name of its twin
    weights: str | None


@dataclass(frozen=True)
class ScaledClean:
    """The figures on clean images, and the share of them whose predicted class is another.

    The differences are those from no recalibration, for the chosen way and for a temperature of clean images.
    """

    ensemble: Figures
    members: Annotated[tuple[Figures, ...], Sized("members")]
    changed_predictions: Fraction
    differences: CleanDifferences | None = None


@dataclass(frozen=True)
class ScaledCorrupted:
    """The figures over all cells; of the ensemble also at each severity, and of each corruption.

    The differences are those from no recalibration: over all cells, and of the calibration errors at each severity.
    They are there for the chosen way and for a temperature of clean images. `changed_predictions` is the share of all
    cells' images whose predicted class is another.
    """

    ensemble: Mapping[Aggregate, AggregateFigures]
    members: Annotated[tuple[Mapping[Aggregate, AggregateFigures], ...], Sized("members")]
    severities: tuple[Figures, ...]  # the corruptions pooled
    corruptions: Mapping[str, Figures]  # the severities pooled
    changed_predictions: Fraction
    differences: CorruptedDifferences | None = None
    calibration_differences: tuple[CalibrationDifferences, ...] = ()


@dataclass(frozen=True)
class Moved:
    """The mean temperature of a set of images, and the mean signals that it follows."""

    images: str
    temperature: Annotated[float, Range(0, 1e6)]
    entropy: Fraction
    disagreement: Fraction


@dataclass(frozen=True)
class Scaled:
    """The figures with one recalibration, and how its temperature moves where it depends on the image."""

    recalibration: Recalibration
    clean: ScaledClean
    corrupted: ScaledCorrupted | None = None
    moves: tuple[Moved, ...] = ()
    shifts: Mapping[str, ScaledCorrupted] = field(default_factory=dict)
    """Other sets of shifted images, by name."""
    validation_nll: Nats | None = None
    """On the clean validation images, each half with the parameters of the other. None in earlier files."""

    def on(self, suite: str) -> ScaledCorrupted | None:
        """The figures on a set of shifted images, if there are any."""
        return self.corrupted if suite == "corrupted" else self.shifts.get(suite)

    def problem(self) -> str:
        count, members = len(self.recalibration.log_temperatures), len(self.clean.members)
        expected = members if self.recalibration.acts == "per-member" else 1
        return (
            "" if count == expected else f"recalibration.log_temperatures has {count} values, and must have {expected}"
        )


@dataclass(frozen=True)
class Recalibrated:
    """A run's figures with recalibrations that were fitted on validation images."""

    made_from: MadeFrom
    command: str
    finished: str
    fitted_on: FittedOn
    care: Care
    clean_how: str
    corrupted_how: str
    ways: Mapping[str, Scaled]
    choice: Choice | None = None
    shifts: Mapping[str, Shift] = field(default_factory=dict)
    """What the other sets of shifted images are that every way has figures of."""
    unscaled_validation_nll: Nats | None = None
    """On the clean validation images without recalibration. None in earlier files."""

    def __repr__(self) -> str:
        """The ways. Their figures would be hundreds of lines."""
        return f"<Recalibrated: {', '.join(self.ways)}; best {self.best}>"

    @property
    def checked_on(self) -> Mapping[str, Shift]:
        return self.shifts

    @property
    def outside(self) -> Mapping[str, OutsideImages]:
        """No figures are recalibrated on outside images."""
        return {}

    @property
    def best(self) -> str:
        """The way that validation images judged best. That may also be no recalibration at all: "none".

        An earlier file says what validation images judged only where the clean figures are of these. Otherwise the
        first way is taken, a single temperature: no choice is made on test images.
        """
        if self.choice is not None:
            return self.choice.chosen
        of_clean = self.made_from.clean.part == "validation"
        nll = {name: way.clean.ensemble.nll if of_clean else way.validation_nll for name, way in self.ways.items()}
        nll["none"] = self.unscaled_validation_nll
        return min(nll, key=lambda name: math.inf if (value := nll[name]) is None else value)

    def without(self, shifts: Collection[str], _: Collection[str]) -> "Recalibrated":
        """Without the figures on these sets of images."""
        ways = {name: replace(way, shifts=all_but(shifts, way.shifts)) for name, way in self.ways.items()}
        return replace(self, ways=ways, shifts=all_but(shifts, self.shifts))

    def problem(self) -> str:
        if not self.ways:
            return "ways is empty, and must have at least one recalibration"
        for name, way in self.ways.items():
            if odd := way.shifts.keys() ^ self.shifts.keys():
                return f"ways.{name}.shifts and shifts are not of the same sets ({min(odd)})"
        if self.choice and self.choice.chosen not in (*self.ways, "none"):
            return f"choice.chosen is {self.choice.chosen!r}, which is not one of the ways"
        return ""
