"""The figures of one predictor, and of an ensemble with its members, on one set of images.

Figures are fractions, never percent, and their names carry their estimator: ece_width15 is the ECE with 15 bins of
equal width.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from counterpoint.records.codec import Range, Sized

Fraction = Annotated[float, Range(0, 1)]
Signed = Annotated[float, Range(-1, 1)]
Nats = Annotated[float, Range(0, 1e6)]
Bound = Annotated[float, Range(0, 100)]  # of few images an interval can end above 1
Count = Annotated[int, Range(0, 10**12)]

CalibrationError = Literal["ece_width15", "ece_rms_width15", "ece_mass15", "ece_rms_mass15"]
Aggregate = Literal["by-corruption", "by-cell", "pooled"]  # docs/paper.md, 13; the first is the headline


@dataclass(frozen=True, kw_only=True)
class Figures:
    """Every metric of one predictor on one set of images."""

    error: Fraction
    nll: Nats
    brier: Annotated[float, Range(0, 2)]
    ece_width15: Fraction
    ece_rms_width15: Fraction
    ece_mass15: Fraction
    ece_rms_mass15: Fraction
    mean_confidence: Fraction
    overconfidence: Signed
    aurc: Fraction | None = None  # the first results had none


@dataclass(frozen=True, kw_only=True)
class AggregateFigures(Figures):
    """The metrics over all cells. Those of an ensemble have the noise floor of each calibration error."""

    ece_width15_floor: Fraction | None = None
    ece_rms_width15_floor: Fraction | None = None
    ece_mass15_floor: Fraction | None = None
    ece_rms_mass15_floor: Fraction | None = None


@dataclass(frozen=True)
class WithInterval:
    """A figure and its 95 % interval over images."""

    value: Nats
    low: Nats
    high: Nats


@dataclass(frozen=True, kw_only=True)
class Intervals:
    """Of the figures over all cells, by corruption. An image counts once, with all its cells."""

    error: WithInterval
    nll: WithInterval
    brier: WithInterval
    ece_width15_debiased: WithInterval
    ece_rms_width15_debiased: WithInterval
    ece_mass15_debiased: WithInterval
    ece_rms_mass15_debiased: WithInterval


@dataclass(frozen=True)
class Estimate:
    """What noise alone would make of a calibration error, the excess over it, and the debiased value."""

    floor: Fraction
    excess: Signed
    debiased: Bound
    low: Bound
    high: Bound


Estimates = Mapping[CalibrationError, Estimate]


@dataclass(frozen=True)
class Honest:
    """The estimates of the ensemble and of each member. In cells the members have none."""

    ensemble: Estimates
    members: Annotated[tuple[Estimates, ...], Sized("members")] = ()


@dataclass(frozen=True)
class Bin:
    """The images whose confidence lies between `low` and `high`."""

    low: Fraction
    high: Fraction
    count: Annotated[int, Range(1, 10**12)]
    confidence: Fraction
    accuracy: Fraction
    draws: Annotated[float, Range(0, 10**12)] | None = None
    """How many independent images tell as much about the accuracy, where images belong together. It is 0 where the
    groups are too few for an interval."""


@dataclass(frozen=True)
class Reliability:
    """The bins that hold images, with equal width and with equal mass."""

    width15: tuple[Bin, ...]
    mass15: tuple[Bin, ...]

    def problem(self) -> str:
        empty = next((name for name in ("width15", "mass15") if not getattr(self, name)), "")
        return f"{empty} is an empty list, and must have at least one bin" if empty else ""


@dataclass(frozen=True)
class Curve:
    """The error (`risk`) of the surest share of the images (`coverage`)."""

    coverage: tuple[Fraction, ...]
    risk: tuple[Fraction, ...]

    def problem(self) -> str:
        if not self.risk:
            return "risk is an empty list, and must have a value for each coverage"
        if len(self.risk) != len(self.coverage):
            return f"risk has {len(self.risk)} values, and coverage has {len(self.coverage)}"
        return ""


@dataclass(frozen=True, kw_only=True)
class ClassFigures:
    """The ensemble on one class: on the images of the class, and where it predicts the class."""

    name: str
    images: Count
    wrong: Count
    """How many of the images are taken for another class."""
    taken_for: str | None = None
    """The class that they are taken for most often; None where no image is wrong."""
    taken: Count = 0
    """How many are taken for that class."""
    predicted: Count
    predicted_right: Count
    """How many of these predictions are right."""
    predicted_confidence: Fraction | None = None
    """Their mean confidence; None where the class is never predicted."""


@dataclass(frozen=True, kw_only=True)
class Summary:
    """An ensemble and its members on one set of images.

    A result that is kept small has no bins and no curves, and in its cells no members. Only clean images have the bins
    of the members: in every cell they would double the file.
    """

    ensemble: Figures
    members: Annotated[tuple[Figures, ...], Sized("members")] = ()
    disagreement: Fraction | None
    pairwise_kl: Nats | None = None
    honest: Honest | None = None
    reliability: Reliability | None = None
    member_reliability: Annotated[tuple[Reliability, ...], Sized("members")] = ()  # of several members
    risk_coverage: Curve | None = None
