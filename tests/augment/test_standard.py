import numpy as np
import pytest
import torch

from counterpoint.augment.standard import CropPlan, apply_crop, sample_crop, to_unit
from counterpoint.errors import InputError
from counterpoint.seeding import Stream
from tests.augment.conftest import DEVICES


def test_crop_equals_padding_slicing_and_flipping_by_hand() -> None:
    images = torch.randint(0, 256, (50, 3, 7, 5), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    plan = sample_crop(torch.arange(50), Stream(0, "crop"), flip=True, padding=2)
    result = apply_crop(images, plan)
    for n in range(50):
        padded = torch.zeros(3, 11, 9, dtype=torch.uint8)
        padded[:, 2:9, 2:7] = images[n]
        top, left = int(plan.top_N[n]), int(plan.left_N[n])
        crop = padded[:, top : top + 7, left : left + 5]
        assert torch.equal(result[n], crop.flip(2) if plan.flip_N[n] else crop)


def test_drawn_evenly_and_for_each_image_alone() -> None:
    numbers = torch.arange(30_000)
    plan = sample_crop(numbers, Stream(0, "crop"), flip=True, padding=4)
    assert abs(plan.flip_N.double().mean() - 0.5) < 0.01
    for offsets in (plan.top_N, plan.left_N):
        counts = torch.bincount(offsets)
        assert counts.shape == (9,)
        assert (counts - 30_000 / 9).abs().max() < 5 * (30_000 / 9) ** 0.5
    some = sample_crop(numbers[100:110], Stream(0, "crop"), flip=True, padding=4)
    assert torch.equal(some.left_N, plan.left_N[100:110])


def test_without_flip_and_padding_nothing_changes() -> None:
    images = torch.randint(0, 256, (20, 1, 6, 6), dtype=torch.uint8)
    plan = sample_crop(torch.arange(20), Stream(0, "crop"), flip=False, padding=0)
    assert torch.equal(apply_crop(images, plan), images)


@pytest.mark.parametrize("device", DEVICES)
def test_every_value_is_divided_as_numpy_divides_it(device: str) -> None:
    values = torch.arange(256, dtype=torch.uint8, device=device)
    expected = np.arange(256, dtype=np.float32) / np.float32(255)
    assert np.array_equal(to_unit(values).cpu().numpy(), expected)


def test_scaling() -> None:
    unit = to_unit(torch.tensor([0, 51, 255], dtype=torch.uint8))
    torch.testing.assert_close(unit, torch.tensor([0.0, 0.2, 1.0]))


def test_float_images_are_refused() -> None:
    zero = torch.zeros(1, dtype=torch.int64)
    with pytest.raises(InputError, match=r"images are torch.float32 of shape \(1, 3, 4, 4\); they must be uint8"):
        apply_crop(torch.zeros(1, 3, 4, 4), CropPlan(zero.bool(), zero, zero, 0))
