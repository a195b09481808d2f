"""The images that a run is evaluated on, in groups: the clean set, all cells of a suite, images of another data set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from counterpoint.data import DataSet, ImageSet
from counterpoint.data.split import held_out_images
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import CorruptedSet
from counterpoint.evaluation.suites import CORRUPTED, Suite
from counterpoint.records.codec import encode
from counterpoint.records.results import Images
from counterpoint.runs.folder import Run


@dataclass(frozen=True, eq=False)
class ImageGroup:
    """Images with the same labels, or without any. Their logits are saved in one file per set of the group."""

    name: str
    about: Mapping[str, Any]
    """What the images are, as JSON values: logits of a group with another `about` are of no use."""
    files: Mapping[str, Callable[[], Tensor]]
    """For each file of logits, its images as uint8 NCHW, read when they are needed."""
    labels: tuple[str, Tensor] | None
    """Their file and the labels."""
    dtype: type[np.floating[Any]]
    largest: int
    """How many images a set has."""


def clean_group(run: Run, data: DataSet, count: int | None = None) -> ImageGroup:
    """The clean images that the run is evaluated on (docs/paper.md, 21).

    For a run on the split these are the held-out training images, for a run on all images the test set.
    """
    split = run.experiment.train_on == "split"
    images = (held_out_images(data, run.experiment) if split else data.test).first(count)
    about = Images(data.name, "validation" if split else "test", len(images))
    files = {"clean": lambda: images.images_NCHW}
    return ImageGroup("clean", encode(about), files, ("labels", images.labels_N), np.float32, len(images))


def outside_group(outside: DataSet, count: int | None = None) -> ImageGroup:
    """The test images of another data set."""
    images = outside.test.first(count)
    about = {"dataset": outside.name, "images": len(images)}
    return ImageGroup("ood", about, {"ood": lambda: images.images_NCHW}, None, np.float16, len(images))


def suite_group(corrupted: CorruptedSet, count: int | None = None) -> ImageGroup:
    """The first `count` images of each cell of a suite."""
    suite, used = corrupted.suite, min(count or corrupted.images, corrupted.images)

    def reader(name: str, severity: int) -> Callable[[], Tensor]:
        def read() -> Tensor:
            return torch.from_numpy(np.array(corrupted.read(name, severity)[:used])).permute(0, 3, 1, 2)

        return read

    return ImageGroup(
        suite.name,
        encode(corrupted.shift(used)),
        {cell_file(suite.name, *cell): reader(*cell) for cell in suite.cells},
        (labels_file(suite.name), corrupted.labels_N[:used]),
        np.float16,
        used,
    )


def images_to_corrupt(run: Run, data: DataSet, suite: Suite) -> ImageSet:
    """The images that a suite is made from, as far as the run may see them."""
    if suite.part == "test":
        return data.test
    if run.experiment.train_on != "split":
        raise InputError(
            f"{suite.name} needs images that were held out, and {run.folder} was trained on all; train a run with "
            "`--set train_on=split`"
        )
    return held_out_images(data, run.experiment)


def cell_file(suite: str, name: str, severity: int) -> str:
    """The file of a cell's logits. Those of the paper's suite lie beside the clean ones, others in their own folder."""
    cell = f"{name}-{severity}"
    return cell if suite == CORRUPTED.name else f"{suite}/{cell}"


def labels_file(suite: str) -> str:
    return "cell-labels" if suite == CORRUPTED.name else f"{suite}/labels"
