"""Suites of corrupted images: which part's images are corrupted, in which ways, how badly, and where they lie.

They are the official files if the data folder has them, otherwise ours, which are made once and kept.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from counterpoint.corrupt import (
    CORRUPTIONS,
    EXTRA_CORRUPTIONS,
    SEVERITIES,
    Constants,
    default_constants,
    find_frost,
    read_about,
    read_cell,
    write_corrupted_set,
)
from counterpoint.corrupt.cells import check_file, holds
from counterpoint.data import DataSet, LabelledImages, Parts
from counterpoint.errors import InputError, one_of, shown
from counterpoint.metrics.groups import Groups, groups_of, recorded
from counterpoint.records.images import Part, Shift, Source
from counterpoint.storage.arrays import read_array
from counterpoint.watching import SILENT, Watcher

OFFICIAL_FOLDERS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}


@dataclass(frozen=True)
class Suite:
    """Each of the corruptions at each of the severities."""

    name: str
    part: Part
    corruptions: tuple[str, ...]
    severities: tuple[int, ...] = SEVERITIES

    @property
    def cells(self) -> list[tuple[str, int]]:
        return [(name, severity) for name in self.corruptions for severity in self.severities]

    @property
    def in_json(self) -> dict[str, Any]:
        """What about.json says of it, beside where the images come from and how many there are."""
        return {"part": self.part, "corruptions": list(self.corruptions), "severities": list(self.severities)}


CORRUPTED = Suite("corrupted", "test", CORRUPTIONS)
"""The paper's suite: the test images under the official corruptions. Its figures are those of -C."""
VALIDATION_EXTRA = Suite("validation-extra", "validation", EXTRA_CORRUPTIONS)
"""Held-out training images under corruptions that are in no test set, so that choices can be made on them."""

SUITES = {suite.name: suite for suite in (CORRUPTED, VALIDATION_EXTRA)}
TAKEN = {"clean", "outside", *SUITES}
"""Names of sets on the page and in the folder, which no other set may have."""


def find_suites(names: Iterable[Suite | str]) -> list[Suite]:
    """The suites of these names. A suite itself is taken as it is."""
    if isinstance(names, str | Suite) or not isinstance(names, Iterable):
        raise InputError(f"suites is {shown(repr(names))}; it must be a list, such as {[*SUITES]}")
    return [
        name if isinstance(name, Suite) else SUITES[one_of("set of images", name, SUITES)]
        for name in dict.fromkeys(names)
    ]


@dataclass(frozen=True, eq=False)
class CorruptedSet:
    """A suite's images on disk, with their labels."""

    suite: Suite
    folder: Path
    labels_N: Tensor
    source: Source
    groups_N: Tensor | None = None
    """Which images belong together; None if none do."""
    _checked: set[str] = field(default_factory=set, init=False)
    """Corruptions whose files were found to be as they were made."""

    @property
    def images(self) -> int:
        """How many each cell has."""
        return len(self.labels_N)

    def read(self, name: str, severity: int) -> np.ndarray:
        """A cell's images as uint8 NHWC, memory-mapped. The first time that a file is read, it is checked."""
        images_NHWC = read_cell(self.folder, name, severity, self.images)
        if name not in self._checked:
            check_file(self.folder, name)
            self._checked.add(name)
        return images_NHWC

    def shift(self, images: int) -> Shift:
        """The suite with the first `images` images of each cell."""
        groups = recorded(self.together(images))
        return Shift(self.source, images, self.suite.part, self.suite.corruptions, self.suite.severities, groups)

    def together(self, images: int) -> Groups | None:
        """Which of the first `images` images belong together."""
        return groups_of(None if self.groups_N is None else self.groups_N[:images], images)


def corrupted_set(
    data: DataSet | Parts,
    root: Path,
    suite: Suite = CORRUPTED,
    images: LabelledImages | None = None,
    watcher: Watcher = SILENT,
    should_stop: Callable[[], bool] = lambda: False,
    *,
    count: int | None = None,
) -> CorruptedSet:
    """The suite's images. Of the paper's suite these are the official files, if they are in `root`.

    Otherwise the suite is made from `images`, which are the test images if none are given. Cells that are there are
    kept. `should_stop` is asked before each corruption (see `write_corrupted_set`).

    `count` is how many images of each cell are needed, from the first on. Where the whole set is not there, only these
    are made, in a folder of their own. An image does not depend on the others, so they have the same bits.
    """
    official = root / _name(data, CORRUPTED)
    if suite == CORRUPTED and official.is_dir():
        labels_N = _test_images(data).labels_N
        _check_labels(official, data.name, labels_N)
        found = CorruptedSet(suite, official, labels_N, Source("official"))
        for name in suite.corruptions:  # raises now, and not in the middle of the long work, if a file is missing
            read_cell(official, name, SEVERITIES[0], found.images)
        return found
    images = images or _test_images(data)
    out = _folder(data, root, suite, default_constants(*images.image_shape[1:]))
    if count is not None and count < len(images) and not holds(out, suite.corruptions):
        images, out = images.first(count), out.with_name(f"{out.name}-first-{count}")
    return make_corrupted_set(data, root, suite, images, out=out, watcher=watcher, should_stop=should_stop)


def make_corrupted_set(
    data: DataSet | Parts,
    root: Path,
    suite: Suite = CORRUPTED,
    images: LabelledImages | None = None,
    *,
    out: Path | None = None,
    seed: int = 0,
    constants: Constants | None = None,
    workers: int | None = None,
    watcher: Watcher = SILENT,
    should_stop: Callable[[], bool] = lambda: False,
) -> CorruptedSet:
    """The suite made from `images`, in `out` or in its usual folder in `root`. Cells that are there are kept.

    Without `constants` they are those that suit the size of the images.
    """
    images = images or _test_images(data)
    constants = constants or default_constants(*images.image_shape[1:])
    folder = out or _folder(data, root, suite, constants, seed)
    write_corrupted_set(
        images.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy(),
        images.labels_N.numpy(),
        folder,
        dataset=data.name,
        names=suite.corruptions,
        seed=seed,
        constants=constants,
        workers=workers,
        frost_dir=find_frost(root),
        progress=lambda _, done, total: watcher.counted(f"making {folder.name}", done, total),
        should_stop=should_stop,
    )
    about = read_about(folder)
    assert about is not None
    source = Source("regenerated", about.seed, about.version, about.frost, constants=about.constants)
    return CorruptedSet(suite, folder, images.labels_N, source, images.groups_N)


def _test_images(data: DataSet | Parts) -> LabelledImages:
    if data.test is None:
        raise InputError(
            f"{data.name} has no test images to corrupt; add a folder test beside train, or rows whose part is test"
        )
    return data.test


def _check_labels(folder: Path, dataset: str, test_N: Tensor) -> None:
    """Raise unless the labels show that the set was made from this data set's test images."""
    path = folder / "labels.npy"
    labels_N = read_array(path, "unpack the official set again")
    if not np.array_equal(labels_N, np.tile(test_N.numpy(), len(SEVERITIES))):
        raise InputError(
            f"{path} does not hold the labels of {dataset}'s test images five times; the folder holds another set"
        )


def _folder(data: DataSet | Parts, root: Path, suite: Suite, constants: Constants, seed: int = 0) -> Path:
    """Where a suite made here usually is."""
    name = _name(data, suite) if constants == "cifar-c" else f"{_name(data, suite)}-{constants}"
    return root / "regenerated" / f"{name}-seed{seed}"


def _name(data: DataSet | Parts, suite: Suite) -> str:
    """The folder's name without its seed. That of the paper's suite is the official one.

    A user's own images may have any name, and change. Their key tells them apart.
    """
    if isinstance(data, Parts) and data.keys:
        return f"{data.name}-{data.keys[suite.part]}-{'C' if suite == CORRUPTED else suite.name}"
    test_set = OFFICIAL_FOLDERS.get(data.name, f"{data.name}-C")
    return test_set if suite.part == "test" else f"{data.name}-{suite.name}"
