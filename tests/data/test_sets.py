from typing import Any

import numpy as np
import pytest
import torch

from counterpoint.data import ImageSet
from counterpoint.errors import InputError

NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def some_images() -> ImageSet:
    images_NCHW = torch.arange(4 * 3 * 2 * 2, dtype=torch.uint8).reshape(4, 3, 2, 2)
    return ImageSet(images_NCHW, torch.tensor([0, 2, 1, 2]), ("a", "b", "c"))


def test_a_set_prints_its_size_and_not_its_pixels() -> None:
    assert repr(some_images()) == "<ImageSet: 4 images of 3×2×2, 3 classes>"


def test_select_keeps_images_and_labels_together() -> None:
    whole = some_images()
    picked = whole.select(torch.tensor([3, 0]))
    assert len(whole) == 4
    assert len(picked) == 2
    assert torch.equal(picked.images_NCHW, torch.stack([whole.images_NCHW[3], whole.images_NCHW[0]]))
    assert picked.labels_N.tolist() == [2, 0]
    assert picked.classes == whole.classes
    assert len(whole.select(torch.empty(0, dtype=torch.int64))) == 0


@pytest.mark.parametrize(("count", "kept"), [(None, 4), (3, 3), (9, 4), (0, 0)])
def test_first_keeps_images_and_labels_together_without_a_copy(count: int | None, kept: int) -> None:
    whole = some_images()
    first = whole.first(count)
    assert torch.equal(first.images_NCHW, whole.images_NCHW[:kept])
    assert torch.equal(first.labels_N, whole.labels_N[:kept])
    assert first.classes == whole.classes
    assert first.images_NCHW.untyped_storage().data_ptr() == whole.images_NCHW.untyped_storage().data_ptr()


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=NEEDS_GPU)])
def test_to_moves_both_tensors_and_changes_nothing_else(device: str) -> None:
    whole = some_images()
    moved = whole.to(device)
    assert moved.images_NCHW.device.type == moved.labels_N.device.type == device
    assert torch.equal(moved.images_NCHW.cpu(), whole.images_NCHW)
    assert torch.equal(moved.labels_N.cpu(), whole.labels_N)
    assert moved.classes == whole.classes


@pytest.mark.parametrize(
    ("images", "labels", "message"),
    [
        (torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64), r"images are float32 \(2, 3, 4, 4\)"),
        (torch.zeros(2, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64), r"must be uint8 \(N, C, H, W\)"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2), r"labels are float32 \(2,\)"),
        (np.zeros((2, 3, 4, 4), np.uint8), torch.zeros(2, dtype=torch.int64), "images are a ndarray; .* a tensor"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), [0, 1], "labels are a list; .* a tensor"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), "2 images and 3 labels"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([0, 2]), "label 2 is not between 0 and 1"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.tensor([-1, 0]), "label -1 is not between 0 and 1"),
    ],
)
def test_what_is_not_an_image_set_is_refused(images: Any, labels: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ImageSet(images, labels, ("a", "b"))
