"""Which images are for what: to train on, to validate on, to test on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, LabelledImages
from counterpoint.data.user_images import Seen, UserImages
from counterpoint.errors import InputError
from counterpoint.seeding import Stream


@dataclass(frozen=True, eq=False)
class Parts:
    """The images of a run: those to train on, to validate on and to test on. A part without images is None.

    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load, parts_of
    >>> parts = parts_of(load("digits"), Experiment("mine", "digits", train_on="all"))
    >>> parts.reported, parts.validation
    ('test', None)
    """

    name: str
    train: LabelledImages
    validation: LabelledImages | None
    """The images on which temperatures and thresholds are chosen."""
    test: LabelledImages | None
    reported: Literal["validation", "test"]
    """The part on which the clean figures are measured."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """For a user's own images: a hash of each part's images."""
    seen: Seen | None = None
    """For a user's own images: those that are not test images."""
    tested: Mapping[str, str] = field(default_factory=dict)
    """For a user's own images: the name of each test image, by the hash of its content."""


def held_out_split(n_train: int, held_out: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The numbers of the training images and of the validation images, as two rising int64 tensors.

    `held_out` of the `n_train` images are for validation. Only the seed decides which.

    >>> from counterpoint.data import held_out_split
    >>> train, validation = held_out_split(10, 3)
    >>> len(train), len(validation)
    (7, 3)
    """
    if not 0 <= held_out < n_train:
        raise InputError(f"held_out is {held_out}; it must be at least 0 and less than the {n_train} training images")
    order = Stream(seed, "split").permutation(n_train)
    return order[held_out:].sort().values, order[:held_out].sort().values


def parts_of(data: DataSet | UserImages, experiment: Experiment) -> Parts:
    """Divide a data set into the images to train on, to validate on and to test on, for an experiment.

    Your own images have their parts already, and figures are measured on the test images. A data set with a name has no
    validation images, so some training images are held out: a tenth (5,000 images of CIFAR). A small set holds out
    more: 500 images, but no more than a third. Temperatures are fitted to these images. A few dozen images would be too
    few, and so would images that the network all gets right.

    With CIFAR and train_on="split", figures are measured on the held-out images too, as in the paper (docs/paper.md,
    21). With the digits they are measured on the test images. With train_on="all" nothing is held out, and figures are
    measured on the test images.

    >>> from counterpoint import Experiment
    >>> from counterpoint.data import load, parts_of
    >>> parts = parts_of(load("digits"), Experiment("mine", "digits"))
    >>> len(parts.train), len(parts.validation), len(parts.test)
    (898, 449, 450)
    """
    if isinstance(data, UserImages):
        return Parts(data.name, data.train, data.val, data.test, "test", data.keys, data.seen, data.contents["test"])
    if experiment.train_on == "all":
        return Parts(data.name, data.train, None, data.test, "test")
    count = len(data.train)
    kept, held_out = held_out_split(count, min(max(count // 10, 500), count // 3))
    return Parts(data.name, data.train.select(kept), data.train.select(held_out), data.test, data.reported)
