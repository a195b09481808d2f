"""The corrupted test set of a data set: the official files where they are, and otherwise ours, made once and kept."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from counterpoint.corrupt import (
    CORRUPTIONS,
    EXTRA_CORRUPTIONS,
    SEVERITIES,
    draw_atlas,
    find_frost,
    read_about,
    read_cell,
    write_corrupted_set,
)
from counterpoint.data import DataSet, load
from counterpoint.data.cifar import CIFAR10
from counterpoint.errors import InputError

OFFICIAL_FOLDERS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
CELLS = tuple((name, severity) for name in CORRUPTIONS for severity in SEVERITIES)

Progress = Callable[[str, int, int], None]
"""Told the corruption being made, and how many images of how many are done."""


@dataclass(frozen=True)
class ShiftedSet:
    """A corrupted set on disk; `source` says where it comes from, as JSON values."""

    folder: Path
    images: int
    source: dict[str, Any]

    def read(self, name: str, severity: int) -> np.ndarray:
        """A cell's images as uint8 NHWC, memory-mapped."""
        return read_cell(self.folder, name, severity, self.images)


def shifted_set(data: DataSet, root: Path, *, progress: Progress = lambda *_: None) -> ShiftedSet:
    """The official set in `root` if it is there, or else the regenerated one, of which what is missing is made now."""
    official = root / _folder_name(data)
    if official.is_dir():
        _check_labels(official, data)
        found = ShiftedSet(official, len(data.test), {"kind": "official"})
        for name in CORRUPTIONS:  # what is missing is found out before the long work
            found.read(name, SEVERITIES[0])
        return found
    return make_shifted_set(data, root, progress=progress)


def make_shifted_set(
    data: DataSet,
    root: Path,
    *,
    out: Path | None = None,
    seed: int = 0,
    extra: bool = False,
    workers: int | None = None,
    progress: Progress = lambda *_: None,
) -> ShiftedSet:
    """The set made from the test images, in `out` or in its place in `root`; what is there already is kept."""
    folder = out or root / "regenerated" / f"{_folder_name(data)}-seed{seed}"
    write_corrupted_set(
        data.test.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy(),
        data.test.labels_N.numpy(),
        folder,
        dataset=data.name,
        names=CORRUPTIONS + EXTRA_CORRUPTIONS if extra else CORRUPTIONS,
        seed=seed,
        workers=workers,
        frost_dir=find_frost(root),
        progress=progress,
    )
    about = read_about(folder)
    assert about is not None
    source = {"kind": "regenerated", "seed": about.seed, "version": about.version, "frost": about.frost}
    return ShiftedSet(folder, len(data.test), source)


def draw_image_atlas(
    image: str,
    dataset: str | None,
    path: Path,
    *,
    seed: int,
    root: Path,
    progress: Callable[[int, int], None] = lambda *_: None,
) -> None:
    """Every corruption × severity of one image: a test image by its number, or a picture file.

    Without a data set the number is one of CIFAR-10's where that is in `root`, and of the digits elsewhere.
    """
    image_HWC = _test_image(int(image), dataset, root) if image.isdecimal() else _picture(Path(image))
    draw_atlas(image_HWC, path, seed, frost_dir=find_frost(root), progress=progress)


def _test_image(number: int, dataset: str | None, root: Path) -> np.ndarray:
    if dataset is None:
        dataset = "cifar10" if any((root / folder).is_dir() for folder in CIFAR10.folders) else "digits"
    test = load(dataset, root).test
    if number >= len(test):
        raise InputError(f"image is {number}; {dataset} has test images 0 to {len(test) - 1}")
    return test.images_NCHW[number].permute(1, 2, 0).numpy()


def _picture(path: Path) -> np.ndarray:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise InputError(f"{path} is neither a test image's number nor a picture that can be read ({error})") from None


def _check_labels(folder: Path, data: DataSet) -> None:
    """Raise unless the set is of this data set's test images: the labels say so."""
    path = folder / "labels.npy"
    try:
        labels_N = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is missing or damaged ({error}); unpack the official set again") from None
    if not np.array_equal(labels_N, np.tile(data.test.labels_N.numpy(), len(SEVERITIES))):
        raise InputError(
            f"{path} does not hold the labels of {data.name}'s test images five times; it is another set's"
        )


def _folder_name(data: DataSet) -> str:
    return OFFICIAL_FOLDERS.get(data.name, f"{data.name}-C")
