"""The images that a run is evaluated on, in groups: the clean set, all cells of a suite, images of another data set."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from counterpoint.data import DataSet, LabelledImages, Parts, load
from counterpoint.data.cifar import CIFAR10, CIFAR100
from counterpoint.data.sets import Pixels
from counterpoint.errors import InputError, shown
from counterpoint.evaluation.logits import OOD, VALIDATION, VALIDATION_LABELS, cell_file, labels_file
from counterpoint.evaluation.suites import CorruptedSet, Suite
from counterpoint.metrics.groups import Groups, groups_of, recorded
from counterpoint.records.codec import encode
from counterpoint.records.images import Images, Part
from counterpoint.runs.folder import Run
from counterpoint.seeding import Stream

OUTSIDE = {"cifar10": CIFAR100, "cifar100": CIFAR10}
"""Outside images that need not be named: CIFAR-100's for a network on CIFAR-10, and the reverse."""
_SUITE_BYTES = 4 << 30


@dataclass(frozen=True, eq=False)
class ImageGroup:
    """Images with the same labels, or without any. Their logits are saved in one file per set of the group."""

    name: str
    about: Mapping[str, Any]
    """A description of the images, as JSON values. Logits of a group with another description cannot be used."""
    files: Mapping[str, Callable[[], Pixels]]
    """For each file of logits, its images as uint8 NCHW, read when they are needed."""
    labels: tuple[str, Tensor] | None
    """Their file and the labels."""
    dtype: type[np.floating[Any]]
    largest: int
    """How many images a set has."""
    together: Groups | None = None
    """Which images belong together; None if none do."""
    listed_in: Literal["suites", "outside"] | None = None
    """Of a user's own images, which may have any name: the list in about.json that has them. "suites" are shifts, each
    with a folder of its name.
    """


def check_counts(**counts: int | None) -> None:
    """Raise for a number of images that is no whole number of 1 or more: an array would be cut from its end."""
    for name, count in counts.items():
        is_whole = isinstance(count, int | np.integer) and not isinstance(count, bool)
        if count is not None and not (is_whole and count >= 1):
            raise InputError(f"{name} is {shown(repr(count))}; it must be a whole number of 1 or more, or None for all")


def clean_groups(run: Run, parts: Parts, root: Path, count: int | None = None) -> list[ImageGroup]:
    """The images that the figures are of, the validation images where these are others, and the other CIFAR's."""
    groups = [clean_group(run, parts, count)]
    if (validation := validation_group(parts, count)) is not None:
        groups.append(validation)
    if (outside := load_outside(run.experiment.dataset, root)) is not None:
        groups.append(outside_group(outside, count))
    return groups


def clean_group(run: Run, parts: Parts, count: int | None = None) -> ImageGroup:
    """The clean images that the run's figures are of."""
    images = parts.validation if parts.reported == "validation" else parts.test
    if images is None:
        raise InputError(
            f"there are no test images for {run.folder}, and its other images cannot replace them: the network was "
            "trained on them, or temperatures and thresholds are chosen on them. Add a folder test beside train, or "
            "rows whose part is test, and evaluate again; you need not train again"
        )
    return _labelled_group("clean", "labels", parts, parts.reported, _first(parts, images, count))


def validation_group(parts: Parts, count: int | None = None) -> ImageGroup | None:
    """The validation images, if the clean images are others; None if there are none."""
    if parts.reported == "validation" or parts.validation is None:
        return None
    images = _first(parts, parts.validation, count)
    return _labelled_group(VALIDATION, VALIDATION_LABELS, parts, "validation", images)


def _first(parts: Parts, images: LabelledImages, count: int | None) -> LabelledImages:
    """The first images. A user's own lie in the order of their classes, so the first would be of a few classes alone,
    and others than those that are corrupted.
    """
    if parts.keys and count is not None and count < len(images):
        raise InputError(
            f"clean_images is {count:,}, and the first {count:,} of {len(images):,} images of your own are not of all "
            "classes alike; leave it out. cell_images can be given: which images are corrupted is drawn"
        )
    return images.first(count)


def _labelled_group(name: str, labels: str, parts: Parts, part: Part, images: LabelledImages) -> ImageGroup:
    together = groups_of(images.groups_N, len(images))
    about = Images(parts.name, part, len(images), parts.keys.get(part), recorded(together))
    files = {name: lambda: images}
    return ImageGroup(name, encode(about), files, (labels, images.labels_N), np.float32, len(images), together)


def load_outside(dataset: str, root: Path) -> DataSet | None:
    """The data set whose images are outside `dataset`, if there is one in `root`."""
    outside = OUTSIDE.get(dataset)
    if outside is None or not any((root / folder).is_dir() for folder in outside.folders):
        return None
    return load(outside.name, root)


def outside_group(outside: DataSet, count: int | None = None) -> ImageGroup:
    """The test images of another data set."""
    images = outside.test.first(count)
    about = {"dataset": outside.name, "images": len(images)}
    return ImageGroup(OOD, about, {OOD: lambda: images}, None, np.float32, len(images))


def suite_group(corrupted: CorruptedSet, count: int | None = None) -> ImageGroup:
    """The first `count` images of each cell of a suite."""
    suite, used = corrupted.suite, min(count or corrupted.images, corrupted.images)

    def read(name: str, severity: int) -> Tensor:
        return torch.from_numpy(np.array(corrupted.read(name, severity)[:used])).permute(0, 3, 1, 2)

    return ImageGroup(
        suite.name,
        encode(corrupted.shift(used)),
        {cell_file(suite.name, *cell): partial(read, *cell) for cell in suite.cells},
        (labels_file(suite.name), corrupted.labels_N[:used]),
        np.float16,
        used,
        corrupted.together(used),
    )


def images_to_corrupt(run: Run, parts: Parts, suite: Suite) -> LabelledImages:
    """The images that a suite is made from.

    Of a user's own images so many are drawn that the suite takes no more than 4 GiB of disk.
    """
    images = parts.test if suite.part == "test" else parts.validation
    if images is None:
        if suite.part == "test":
            raise InputError(
                f"{suite.name} needs test images, and {run.folder} has none; leave it out of the suites (--sets)"
            )
        raise InputError(
            f"{suite.name} needs images that were held out, and {run.folder} was trained on all; train a run with "
            "train_on=split"
        )
    if not parts.keys:
        return images
    most = max(1, _SUITE_BYTES // (len(suite.cells) * math.prod(images.image_shape)))
    return images.select(order_to_corrupt(len(images))[:most])


def order_to_corrupt(images: int) -> Tensor:
    """The order in which so many of a user's own images are corrupted, as their places in their part.

    They lie there in the order of their classes, so the first ones would all be of one class.
    """
    return Stream(0, "images to corrupt").permutation(images)
