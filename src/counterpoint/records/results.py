"""results.json: everything that `counterpoint evaluate` found out about a run."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from counterpoint.records.codec import Range, Sized
from counterpoint.records.figures import (
    Aggregate,
    AggregateFigures,
    Bin,
    ClassFigures,
    Count,
    Curve,
    Fraction,
    Intervals,
    Nats,
    Summary,
)
from counterpoint.records.images import Images, MadeFrom, Shift
from counterpoint.records.outside import EarlierOutside, Outside

Seconds = Annotated[float, Range(0, 1e12)]
Correlation = Annotated[float, Range(-1, 1)]


@dataclass(frozen=True)
class Segment:
    """One uninterrupted part of a training."""

    step: Count
    engine: str | None
    device: str
    commit: str | None


@dataclass(frozen=True, kw_only=True)
class Trained:
    """How and where the run was trained."""

    seed: Count
    segments: tuple[Segment, ...] = ()  # the first results had none
    command: str
    started: str
    finished: str
    train_seconds: Seconds
    device: str
    commit: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class Imported:
    """Predictions of a model that was trained elsewhere, and all that is known of it."""

    file: str | None = None
    """The name of the file that they came in; None if they were given in Python."""
    sha256: str  # of the file, or of all arrays
    classes: tuple[str, ...] = ()
    command: str
    finished: str


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """How and where the run was evaluated. Of given predictions, the precision is that of the numbers."""

    command: str
    earlier_commands: tuple[str, ...] = ()
    """What else made logits that the figures may be of: other sets, or all of them if only figures were made anew."""
    finished: str
    seconds: Seconds
    precision: str
    weights: str | None = None
    device: str
    commit: str | None
    versions: Mapping[str, str]


@dataclass(frozen=True)
class Aggregates:
    """The figures over all cells, and the means over cells of how far the members differ."""

    ensemble: Mapping[Aggregate, AggregateFigures]
    members: Annotated[tuple[Mapping[Aggregate, AggregateFigures], ...], Sized("members")]
    disagreement: Fraction | None
    pairwise_kl: Nats | None = None
    intervals: Intervals | None = None
    """Of the ensemble. Results of earlier versions have none, and neither has a single image."""
    floors_over: Literal["cells", "images"] = "cells"
    """What the noise floors take as independent draws. Earlier results took an image's cells so, which is too low."""


@dataclass(frozen=True, kw_only=True)
class Shifted(Shift):
    """The figures under shift. `cells` has each corruption's summaries, one for each of the severities."""

    aggregates: Aggregates
    cells: Mapping[str, tuple[Summary, ...]]
    risk_coverage: tuple[Curve, ...] = ()
    member_bins: tuple[Annotated[tuple[tuple[Bin, ...], ...], Sized("members")], ...] = ()
    """Of several members, at each severity the equal-width bins of each member on the images of all corruptions."""

    @property
    def shift(self) -> Shift:
        return Shift(self.source, self.images, self.part, self.corruptions, self.severities, self.groups)

    def problem(self) -> str:
        if not self.severities:
            return "severities is an empty list, and must have at least one severity"
        if not self.corruptions:
            return "corruptions is an empty list, and must have at least one corruption"
        lists = {"risk_coverage": self.risk_coverage, "member_bins": self.member_bins}
        problems = (self.wrong_severities(name, values) for name, values in lists.items() if values)
        return self.wrong_cells(self.cells) or next(filter(None, problems), "")

    def all_cells(self) -> Iterator[Summary]:
        for severities in self.cells.values():
            yield from severities


@dataclass(frozen=True)
class FactorCorrelation:
    """How similar the members' factors are, over the channels of all layers.

    `plain` is 0 for independent draws, and 1 if all members are identical. It is below 1 if two members are identical
    and the others are not. `closest` is 1 as soon as two members are identical. For independent draws it is about −1 /
    (M − 1), which is given as `independent`.

    >>> from counterpoint.metrics import FactorCorrelation
    >>> FactorCorrelation(plain=0.0, closest=-0.2, independent=-0.33).closest
    -0.2
    """

    plain: Correlation  # mean over pairs, each layer's mean over members and channels removed
    closest: Correlation  # the pair most alike, after removing each channel's mean over members
    independent: Correlation


@dataclass(frozen=True)
class Between:
    """How much two members differ, and how much independent ones would."""

    disagreement: Fraction
    pairwise_kl: Nats
    independent_disagreement: Fraction


@dataclass(frozen=True, kw_only=True)
class Collapse:
    """Whether the members differ, on clean images and at each severity."""

    r: FactorCorrelation | None = None
    s: FactorCorrelation | None = None
    clean: Between
    severities: tuple[Between, ...] = ()
    verdict: str


@dataclass(frozen=True)
class HealthAfter:
    """The channels that were lost after an epoch, and the spread of the members' factors."""

    epoch: Count
    below_eps: Count
    dead_scales: Count
    spread_r: Annotated[float, Range(0, 1e6)] | None = None
    spread_s: Annotated[float, Range(0, 1e6)] | None = None


@dataclass(frozen=True)
class HealthRecord:
    """A network's health in some epochs, and the warnings at the end of training."""

    channels: Count
    epochs: tuple[HealthAfter, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Results:
    """A run's figures, with all that is needed to read and repeat them.

    Those of a model that was trained elsewhere have its name for an experiment, no configuration and no training.
    """

    counterpoint: str
    experiment: str
    config: Mapping[str, Any]
    run: Trained | None = None
    imported: Imported | None = None
    """Where the predictions come from, if the model was not trained here."""
    evaluation: Evaluation
    evaluated_on: Images
    validated_on: Images | None = None
    """What temperatures and thresholds are chosen on, where that is another part than the one evaluated on."""
    clean: Summary
    corrupted: Shifted | None = None
    """The paper's suite on the test images: 15 corruptions at 5 severities."""
    shifts: Mapping[str, Shifted] = field(default_factory=dict)
    """Other suites by name."""
    classes: tuple[ClassFigures, ...] = ()
    """Of the clean images. Results of earlier versions have none."""
    outside: Mapping[str, Outside] = field(default_factory=dict)
    """Sets of images of none of the classes, by name."""
    ood: EarlierOutside | None = None
    """Only in files of earlier versions, which had one such set. Once read, it is in `outside`."""
    collapse: Collapse | None = None
    health: HealthRecord | None = None

    def __post_init__(self) -> None:
        if self.ood is not None:
            object.__setattr__(self, "outside", {self.ood.dataset: self.ood.figures, **self.outside})
            object.__setattr__(self, "ood", None)

    def __repr__(self) -> str:
        """The headline. All figures of a run would be thousands of lines."""
        shown = [f"clean error {self.clean.ensemble.error:.2%}, ECE {self.clean.ensemble.ece_width15:.2%}"]
        if self.corrupted and (figures := self.corrupted.aggregates.ensemble.get("by-corruption")):
            shown.append(f"corrupted error {figures.error:.2%}, ECE {figures.ece_width15:.2%}")
        shown += [*self.shifts, *self.outside]
        return f"<Results of {self.experiment}: {'; '.join(shown)}>"

    def problem(self) -> str:
        if self.run is None and self.imported is None:
            return "run is missing"
        if self.run and self.imported:
            return "imported is there beside run, and a model was trained here or elsewhere"
        if not self.clean.members:
            return "clean.members is missing"
        if self.health and not self.health.epochs:
            return "health.epochs is an empty list, and must have at least one epoch"
        if self.collapse and self.collapse.severities and self.corrupted:
            return self.corrupted.wrong_severities("collapse.severities", self.collapse.severities)
        return ""

    @property
    def trained(self) -> Trained:
        """How the run was trained, for readers that get no others than runs that were trained here."""
        assert self.run is not None, "this model was not trained here"
        return self.run

    @property
    def seed(self) -> int | None:
        """None where the training is not known."""
        return self.run.seed if self.run else None

    @property
    def is_ensemble(self) -> bool:
        return len(self.clean.members) > 1

    @property
    def is_deep(self) -> bool:
        """Whether the members share nothing. Configurations from before there was a choice do not say."""
        return self.is_ensemble and self.config.get("ensemble") == "deep"

    @property
    def suites(self) -> dict[str, Shifted]:
        """All figures under shift, by the name of the suite."""
        first = {} if self.corrupted is None else {"corrupted": self.corrupted}
        return first | dict(self.shifts)

    @property
    def checked_shifts(self) -> dict[str, Shift]:
        """The sets of shifted test images beside the paper's suite: recalibrations and thresholds are tried on them."""
        return {name: shifted.shift for name, shifted in self.shifts.items() if shifted.part == "test"}

    def images_of(self, suite: str) -> Hashable:
        """Which images a set of shifted images has; None if it is not there.

        Two users' images may have the same name, so the key of those that were corrupted counts too.
        """
        if suite not in self.suites:
            return None
        key = self.evaluated_on.key if suite == "corrupted" else None
        return self.suites[suite].shift.identity(self.evaluated_on), key

    @property
    def made_from(self) -> MadeFrom:
        """The logits that these figures were computed from."""
        shift = None if self.corrupted is None else self.corrupted.shift
        evaluation, given = self.evaluation, self.imported.sha256 if self.imported else None
        return MadeFrom(evaluation.weights, evaluation.precision, self.evaluated_on, shift, self.validated_on, given)
