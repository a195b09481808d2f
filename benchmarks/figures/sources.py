"""What the pictures are made from: CIFAR-10, the digits, the demo's runs and the committed results."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from counterpoint.data import DataSet, data_root, load
from counterpoint.evaluation.logits import labels_file, map_cells, read_about, read_labelled
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.runs.folder import Run, load_run


@dataclass(frozen=True)
class Sources:
    """`demo` is the folder that `counterpoint demo` wrote, `results` the folder of committed results."""

    demo: Path
    results: Path

    @property
    def runs(self) -> list[Path]:
        """The folders of the demo's ensemble and of its single network."""
        return [self.demo / experiment.name.replace("/", "-") for experiment in QUICKSTART]

    @property
    def ensemble(self) -> Run:
        """The demo's ensemble."""
        return load_run(self.runs[0])

    @property
    def digits(self) -> DataSet:
        return _loaded("digits")

    @property
    def cifar(self) -> DataSet:
        return _loaded("cifar10")


@dataclass(frozen=True, eq=False)
class Shifted:
    """The members' probabilities (M, N, K) of the images of all cells, and their labels."""

    probs_MNK: NDArray[np.float64]
    labels_N: NDArray[np.int64]


@cache
def _loaded(name: str) -> DataSet:
    return load(name, data_root())


def corrupted_probs(run: Run) -> Shifted:
    """What a run's members say of every corrupted image that it was evaluated on."""
    shift = read_about(run).suites[CORRUPTED.name]
    cells = [images for _, _, images in map_cells(lambda cell: cell, run, CORRUPTED.name, shift)]
    probs_MNK = softmax(np.concatenate([images.logits_MNK for images in cells], axis=1), axis=2)
    return Shifted(probs_MNK, np.concatenate([images.labels_N for images in cells]))


def corrupted_cell(run: Run, corruption: str, severity: int) -> Shifted:
    """The same of one cell."""
    images = read_labelled(run, f"{corruption}-{severity}", labels_file(CORRUPTED.name))
    return Shifted(softmax(images.logits_MNK, axis=2), images.labels_N)
