"""How well a run tells known images, which are of its classes, from outside images, which are of none of them.

Known images are the positives: the AUROC is the chance that one of them looks more known than an outside image.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from counterpoint.records.codec import Sized
from counterpoint.records.figures import Count, Fraction
from counterpoint.records.images import OutsideImages

Signal = Literal["entropy_of_mean", "mutual_information"]
"""What only several members show in full: how unsure they are together, and how far they differ. Both are higher for an
image that looks less known.
"""


@dataclass(frozen=True, kw_only=True)
class Separation:
    """By one number per image. An earlier version computed the AUROC alone."""

    auroc: Fraction
    auroc_low: Fraction | None = None
    auroc_high: Fraction | None = None
    """A 95 % interval over images, of the whole ensemble; members have none."""
    fpr95: Fraction | None = None
    """The share of outside images that are accepted if 95 % of the known images are."""


@dataclass(frozen=True, kw_only=True)
class ByConfidence(Separation):
    mean_confidence: Fraction | None = None
    """On the outside images."""


@dataclass(frozen=True, kw_only=True)
class Outside(OutsideImages):
    """The figures on one set of outside images, against the clean images."""

    ensemble: ByConfidence
    members: Annotated[tuple[ByConfidence, ...], Sized("members")]
    signals: Mapping[Signal, Separation] | None = None
    """Of several members."""


@dataclass(frozen=True)
class Auroc:
    ensemble: Fraction
    members: Annotated[tuple[Fraction, ...], Sized("members")]


@dataclass(frozen=True)
class EarlierOutside:
    """What earlier versions wrote: the AUROC between the clean images and those of one other data set."""

    dataset: str
    images: Count
    auroc: Auroc

    @property
    def figures(self) -> Outside:
        return Outside(
            images=self.images,
            ensemble=ByConfidence(auroc=self.auroc.ensemble),
            members=tuple(ByConfidence(auroc=member) for member in self.auroc.members),
        )
