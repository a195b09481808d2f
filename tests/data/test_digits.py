import numpy as np
import torch
from PIL import Image
from sklearn import datasets

from counterpoint.data import load


def test_each_digit_is_there_once_enlarged_with_its_label() -> None:
    digits = load("digits")
    assert (len(digits.train), len(digits.test)) == (1_347, 450)
    assert digits.train.images_NCHW.shape[1:] == (1, 32, 32)
    source = datasets.load_digits()
    expected = sorted(
        (Image.fromarray(np.uint8(np.round(small * 255 / 16))).resize((32, 32), Image.Resampling.BICUBIC).tobytes(), n)
        for small, n in zip(source.images, source.target.tolist(), strict=True)
    )
    found = [
        (image.numpy().tobytes(), int(label))
        for part in (digits.train, digits.test)
        for image, label in zip(part.images_NCHW, part.labels_N, strict=True)
    ]
    assert sorted(found) == expected


def test_ink_is_bright_and_paper_black() -> None:
    images_NCHW = load("digits").test.images_NCHW
    assert int(images_NCHW.max()) == 255
    assert float((images_NCHW[..., :3] == 0).double().mean()) > 0.8


def test_a_quarter_of_each_class_is_for_testing_and_always_the_same() -> None:
    first, second = load("digits"), load("digits")
    assert torch.equal(first.test.images_NCHW, second.test.images_NCHW)
    in_train, in_test = (torch.bincount(part.labels_N, minlength=10) for part in (first.train, first.test))
    assert ((in_train + in_test) / 4 - in_test).abs().max() < 1
