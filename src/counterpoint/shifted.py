"""The corrupted test set of a data set: the official files where they are, and otherwise ours, made once and kept."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterpoint.corrupt import CORRUPTIONS, SEVERITIES, read_about, read_cell, write_corrupted_set
from counterpoint.data.sets import DataSet

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


def shifted_set(data: DataSet, root: Path, *, seed: int = 0, progress: Progress = lambda *_: None) -> ShiftedSet:
    """The official set in `root` if it is there, or else the regenerated one, of which what is missing is made now."""
    official = root / OFFICIAL_FOLDERS.get(data.name, f"{data.name}-C")
    if official.is_dir():
        return ShiftedSet(official, len(data.test), {"kind": "official"})
    folder = regenerated_folder(data.name, root, seed)
    write_corrupted_set(
        data.test.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy(),
        data.test.labels_N.numpy(),
        folder,
        dataset=data.name,
        seed=seed,
        progress=progress,
    )
    about = read_about(folder)
    assert about is not None
    source = {"kind": "regenerated", "seed": about.seed, "version": about.version, "frost": about.frost}
    return ShiftedSet(folder, len(data.test), source)


def regenerated_folder(name: str, root: Path, seed: int) -> Path:
    """Where the set of this data set and seed is kept."""
    return root / "regenerated" / f"{OFFICIAL_FOLDERS.get(name, f'{name}-C')}-seed{seed}"
