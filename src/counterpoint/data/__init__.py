"""Data sets as uint8 tensors. `load` reads one by its name, `load_images` reads a user's own.

`counterpoint.data.fetch` downloads one and says what is there.
"""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from counterpoint.data.cifar import CIFAR10, CIFAR100, load_cifar
from counterpoint.data.digits import load_digits
from counterpoint.data.mapped import MappedSet
from counterpoint.data.sets import DataSet, ImageSet, LabelledImages
from counterpoint.data.split import Parts, held_out_split, parts_of
from counterpoint.data.user_images import UserImages, load_images
from counterpoint.errors import one_of
from counterpoint.storage.folders import data_root

__all__ = [
    "DATASETS",
    "DataSet",
    "ImageSet",
    "LabelledImages",
    "MappedSet",
    "Parts",
    "UserImages",
    "data_root",
    "held_out_split",
    "load",
    "load_images",
    "parts_of",
]

DATASETS: dict[str, Callable[[Path], DataSet]] = {
    "cifar10": lambda root: load_cifar(CIFAR10, root),
    "cifar100": lambda root: load_cifar(CIFAR100, root),
    "digits": lambda _: load_digits(),
}


def load(name: str, root: Path | str | None = None) -> DataSet:
    """A data set by its name ("cifar10", "cifar100" or "digits"), from the files in `root` (default: `data_root()`).

    >>> from counterpoint.data import load
    >>> digits = load("digits")  # they come with scikit-learn
    >>> digits.train.classes[:3], digits.train.image_shape
    (('0', '1', '2'), (1, 32, 32))
    """
    return _load_once(one_of("data set", name, DATASETS), Path(root or data_root()))


@lru_cache(maxsize=2)
def _load_once(name: str, root: Path) -> DataSet:
    """The set is kept for the next caller: training, evaluation and the other rows of a table use the same one."""
    return DATASETS[name](root)
