"""scikit-learn's embedded digits, large enough to be cropped and corrupted; nothing to download."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch
from PIL import Image

from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.seeding import Stream

_SIDE = 32
_BRIGHTEST = 16
_FILE = Path("data", "digits.csv.gz")


def load_digits() -> DataSet:
    """1,797 grey 8×8 digits enlarged to 32×32, one channel: 1,347 to train on and 450 to test on."""
    small_NHW, classes_N = _read_digits()
    images_N1HW = torch.from_numpy(np.stack([_enlarge(small_HW) for small_HW in small_NHW])[:, None])
    labels_N = torch.from_numpy(classes_N).to(torch.int64)
    # Shuffle the images, sort them by class, and test on every fourth: a quarter of each class, 450 images in all.
    shuffled = Stream(0, "digits").permutation(len(labels_N))
    by_class = shuffled[torch.argsort(labels_N[shuffled], stable=True)]
    is_test = torch.zeros(len(labels_N), dtype=torch.bool)
    is_test[by_class[::4]] = True
    train, test = (ImageSet(images_N1HW[part], labels_N[part], tuple("0123456789")) for part in (~is_test, is_test))
    return DataSet("digits", train, test, reported="test")


def _read_digits() -> tuple[np.ndarray, np.ndarray]:
    """The images (N, 8, 8) and their classes, from scikit-learn's own file: importing it takes most of a second."""
    found = find_spec("sklearn")
    file = Path(found.origin).with_name("datasets") / _FILE if found and found.origin else None
    if file is None or not file.is_file():  # a version that keeps it elsewhere
        from sklearn import datasets

        digits = datasets.load_digits()
        return digits.images, digits.target
    rows = np.loadtxt(file, delimiter=",")
    return rows[:, :-1].reshape(-1, 8, 8), rows[:, -1].astype(np.int64)


def _enlarge(small_HW: np.ndarray) -> np.ndarray:
    grey = np.rint(small_HW * (255 / _BRIGHTEST)).astype(np.uint8)
    return np.asarray(Image.fromarray(grey).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC))
