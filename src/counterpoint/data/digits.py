"""scikit-learn's embedded digits, large enough to be cropped and corrupted; nothing to download."""

import numpy as np
import torch
from PIL import Image

from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.seeding import Stream

_SIDE = 32
_BRIGHTEST = 16


def load_digits() -> DataSet:
    """1,797 grey 8×8 digits enlarged to 32×32, one channel: 1,347 to train on and 450 to test on."""
    from sklearn import datasets  # takes a second to import, and only the digits need it

    digits = datasets.load_digits()
    images_N1HW = torch.from_numpy(np.stack([_enlarge(small) for small in digits.images])[:, None])
    labels_N = torch.from_numpy(digits.target).to(torch.int64)
    # Shuffle the images, sort them by class, and test on every fourth: a quarter of each class, 450 images in all.
    shuffled = Stream(0, "digits").permutation(len(labels_N))
    by_class = shuffled[torch.argsort(labels_N[shuffled], stable=True)]
    is_test = torch.zeros(len(labels_N), dtype=torch.bool)
    is_test[by_class[::4]] = True
    train, test = (ImageSet(images_N1HW[part], labels_N[part], tuple("0123456789")) for part in (~is_test, is_test))
    return DataSet("digits", train, test, reported="test")


def _enlarge(small_HW: np.ndarray) -> np.ndarray:
    grey = np.rint(small_HW * (255 / _BRIGHTEST)).astype(np.uint8)
    return np.asarray(Image.fromarray(grey).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC))
