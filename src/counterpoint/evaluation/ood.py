"""Images from outside a network's data set: CIFAR-100's test images for a network on CIFAR-10, and the reverse."""

from pathlib import Path

import numpy as np

from counterpoint.data import DataSet, load
from counterpoint.data.cifar import CIFAR10, CIFAR100
from counterpoint.evaluation.logits import has_logits, read_probs
from counterpoint.metrics import ood_auroc
from counterpoint.records.results import Auroc, Outside
from counterpoint.runs.folder import Run

OUTSIDE = {"cifar10": CIFAR100, "cifar100": CIFAR10}


def load_outside(dataset: str, root: Path) -> DataSet | None:
    """The data set whose images are outside `dataset`, if there is one in `root`."""
    outside = OUTSIDE.get(dataset)
    if outside is None or not any((root / folder).is_dir() for folder in outside.folders):
        return None
    return load(outside.name, root)


def outside_record(run: Run, clean_MNK: np.ndarray) -> Outside | None:
    """How well confidence tells clean images from outside ones. None where no logits of outside images were saved."""
    if not has_logits(run, "ood"):
        return None
    outside_MNK = read_probs(run, "ood")
    auroc = Auroc(
        _auroc(clean_MNK.mean(axis=0), outside_MNK.mean(axis=0)),
        tuple(_auroc(*probs) for probs in zip(clean_MNK, outside_MNK, strict=True)),
    )
    return Outside(OUTSIDE[run.experiment.dataset].name, outside_MNK.shape[1], auroc)


def _auroc(inside_NK: np.ndarray, outside_NK: np.ndarray) -> float:
    return ood_auroc(inside_NK.max(axis=1), outside_NK.max(axis=1))
