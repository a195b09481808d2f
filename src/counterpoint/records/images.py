"""Which images something was computed from: sets of clean images, shifts of them, and the logits of both."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from counterpoint.records.figures import Count

Part = Literal["test", "validation"]
Constants = Literal["cifar-c", "imagenet-c"]
"""Whose table says how strong a corruption's severities are."""


@dataclass(frozen=True)
class InGroups:
    """How many groups the images are in, such as patients, and a hash of which images are in one group.

    A group is one draw: intervals are over groups. Where each image is alone there are none.
    """

    count: Count
    key: str


@dataclass(frozen=True)
class Images:
    """A set of images: some of one part of a data set."""

    dataset: str
    part: Part
    images: Count
    key: str | None = None
    """Of a user's own images, a hash of what they are; of images that only a file of predictions knows, one of their
    labels. A data set that has a name needs none."""
    groups: InGroups | None = None

    @property
    def draws(self) -> int:
        """At least how many independent images tell as much."""
        return self.groups.count if self.groups else self.images


@dataclass(frozen=True)
class Source:
    """Where shifted images come from: the official files, our generator with a seed, or a user's own shift.

    Of given predictions only these are known, and not the images.
    """

    kind: Literal["official", "regenerated", "given", "own"]
    seed: Count | None = None
    version: str | None = None
    frost: str | None = None
    key: str | None = None
    """Of a user's own shift, a hash of what its images are. Of given predictions for other images than the clean ones,
    one of their labels."""
    constants: Constants | None = None
    """How strong the severities of the corruptions are."""

    def __post_init__(self) -> None:
        if self.constants is None and self.kind in ("official", "regenerated"):
            # What was written before the field was made with CIFAR-C's, the only constants at that time.
            object.__setattr__(self, "constants", "cifar-c")

    def problem(self) -> str:
        if self.kind == "regenerated":
            for name in ("seed", "version", "frost"):
                if getattr(self, name) is None:
                    return f"{name} is missing"
        return "key is missing" if self.kind == "own" and self.key is None else ""


@dataclass(frozen=True)
class Shift:
    """Images under shift: one part's first `images` images, in each of the corruptions at each of the severities.

    A shift that is not ours has its own name for a corruption. Without severities it has one, 1.
    """

    source: Source
    images: Count
    part: Part
    corruptions: tuple[str, ...]
    severities: tuple[Count, ...]
    groups: InGroups | None = None

    @property
    def draws(self) -> int:
        """At least how many independent images tell as much."""
        return self.groups.count if self.groups else self.images

    @property
    def named_cells(self) -> list[tuple[str, int]]:
        """Each corruption at each severity, one corruption after the other."""
        return [(name, severity) for name in self.corruptions for severity in self.severities]

    def identity(self, clean: Images) -> Hashable:
        """Which images these are, in a run whose clean images are `clean`.

        The key of a user's own shift says it. Of given predictions only the labels are known.
        """
        return self, None if self.source.kind == "own" else clean.dataset

    def wrong_severities(self, name: str, values: Sequence[object]) -> str:
        """What is wrong with a list that has a value for each severity; "" if nothing is."""
        found, expected = len(values), len(self.severities)
        return f"{name} has {found} values, and there are {expected} severities" if found != expected else ""

    def wrong_cells(self, cells: Mapping[str, Sequence[object]]) -> str:
        """The same of `cells`, which have such a list for each corruption."""
        if surplus := cells.keys() - set(self.corruptions):
            return f"cells.{min(surplus)} is not one of the corruptions"
        if missing := [name for name in self.corruptions if name not in cells]:
            return f"cells.{missing[0]} is missing"
        problems = (self.wrong_severities(f"cells.{name}", cells[name]) for name in self.corruptions)
        return next(filter(None, problems), "")

    @property
    def has_severities(self) -> bool:
        return len(self.severities) > 1 or self.source.kind in ("official", "regenerated")


@dataclass(frozen=True)
class OutsideImages:
    """Images of none of the classes."""

    images: Count
    key: str | None = None
    """Of a user's own images, a hash of what they are. A data set that has a name needs none, and images that only a
    file of predictions knows have none."""

    @property
    def identity(self) -> "OutsideImages":
        """Which images they are, without what was found on them."""
        return OutsideImages(self.images, self.key)


@dataclass(frozen=True)
class MadeFrom:
    """Which logits something was computed from: of which weights, how precise, and of which images."""

    weights: str | None  # a hash; None in results from before it was kept, and of given predictions
    precision: str
    clean: Images
    corrupted: Shift | None
    validation: Images | None = None
    """The validation images, where the clean ones are others."""
    given: str | None = None
    """For given predictions: their hash."""
