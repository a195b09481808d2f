"""The corrupted test set of a data set: the official files where they are there, otherwise ours, made once and kept."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.corrupt import (
    CORRUPTIONS,
    EXTRA_CORRUPTIONS,
    SEVERITIES,
    find_frost,
    read_about,
    read_cell,
    write_corrupted_set,
)
from counterpoint.data import DataSet
from counterpoint.errors import InputError
from counterpoint.watching import SILENT, Watcher

OFFICIAL_FOLDERS = {"cifar10": "CIFAR-10-C", "cifar100": "CIFAR-100-C"}
CELLS = tuple((name, severity) for name in CORRUPTIONS for severity in SEVERITIES)


@dataclass(frozen=True)
class CorruptedSet:
    """A corrupted set on disk, with `images` images per cell. `source` says where it comes from, as JSON values."""

    folder: Path
    images: int
    source: dict[str, Any]

    def read(self, name: str, severity: int) -> np.ndarray:
        """A cell's images as uint8 NHWC, memory-mapped."""
        return read_cell(self.folder, name, severity, self.images)


def corrupted_set(data: DataSet, root: Path, watcher: Watcher = SILENT) -> CorruptedSet:
    """The official set in `root` if it is there. Otherwise the regenerated one, whose missing cells are made now."""
    official = root / _folder_name(data)
    if official.is_dir():
        _check_labels(official, data)
        found = CorruptedSet(official, len(data.test), {"kind": "official"})
        for name in CORRUPTIONS:  # raises now, and not in the middle of the long work, if a file is missing
            found.read(name, SEVERITIES[0])
        return found
    return make_corrupted_set(data, root, watcher=watcher)


def make_corrupted_set(
    data: DataSet,
    root: Path,
    *,
    out: Path | None = None,
    seed: int = 0,
    extra: bool = False,
    workers: int | None = None,
    watcher: Watcher = SILENT,
) -> CorruptedSet:
    """The set made from the test images, in `out` or in its usual folder in `root`. Cells that are there are kept."""
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
        progress=lambda _, done, total: watcher.counted(f"making {folder.name}", done, total),
    )
    about = read_about(folder)
    assert about is not None
    source = {"kind": "regenerated", "seed": about.seed, "version": about.version, "frost": about.frost}
    return CorruptedSet(folder, len(data.test), source)


def _check_labels(folder: Path, data: DataSet) -> None:
    """Raise unless the labels show that the set was made from this data set's test images."""
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
