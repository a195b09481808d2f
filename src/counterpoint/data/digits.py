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
    whole = ImageSet(images_N1HW, torch.from_numpy(digits.target).to(torch.int64), tuple("0123456789"))
    # Shuffle the images, sort them by class, and test on every fourth: a quarter of each class, 450 images in all.
    shuffled = Stream(0, "digits").permutation(len(whole))
    by_class = shuffled[torch.argsort(whole.labels_N[shuffled], stable=True)]
    is_test = torch.zeros(len(whole), dtype=torch.bool)
    is_test[by_class[::4]] = True
    return DataSet("digits", train=whole.select(~is_test), test=whole.select(is_test))


def _enlarge(small_HW: np.ndarray) -> np.ndarray:
    grey = np.rint(small_HW * (255 / _BRIGHTEST)).astype(np.uint8)
    return np.asarray(Image.fromarray(grey).resize((_SIDE, _SIDE), Image.Resampling.BICUBIC))
