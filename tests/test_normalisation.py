"""Pixels to what networks see, and back."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.normalisation import NORMALISATION, Normalisation

BY_CHANNEL = Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_networks_see_minus_one_to_one() -> None:
    assert NORMALISATION.limits == (-1.0, 1.0)
    assert torch.equal(NORMALISATION.apply(torch.tensor([0.0, 0.25, 1.0])), torch.tensor([-1.0, -0.5, 1.0]))


def test_another_one_by_hand() -> None:
    other = Normalisation(mean=0.2, std=0.4)
    assert other.limits == pytest.approx((-0.5, 2.0))
    unit = torch.rand(5, dtype=torch.float64)
    torch.testing.assert_close(other.apply(unit), (unit - 0.2) / 0.4)
    torch.testing.assert_close(other.undo(other.apply(unit)), unit)


def channel_by_channel(images: Tensor, change: Any) -> Tensor:
    """The slow twin: each channel as if it were alone."""
    channels = [change(images[..., c, :, :], BY_CHANNEL.mean[c], BY_CHANNEL.std[c]) for c in range(3)]  # type: ignore[index]
    return torch.stack(channels, dim=-3)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5), (2, 2, 3, 4, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_each_channel_has_its_own_mean_and_std(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    unit = torch.rand(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))
    seen = channel_by_channel(unit, lambda x, mean, std: (x - mean) / std)
    assert BY_CHANNEL.apply(unit).dtype == dtype
    assert torch.equal(BY_CHANNEL.apply(unit), seen)
    torch.testing.assert_close(BY_CHANNEL.undo(seen), unit)
    far = 5 * seen
    clipped = channel_by_channel(far, lambda x, mean, std: x.clamp((0 - mean) / std, (1 - mean) / std))
    assert torch.equal(BY_CHANNEL.clip(far), clipped)
    assert not torch.equal(clipped, far)
    changes = torch.rand((*shape[:-3], 1, 1, 1), dtype=dtype)
    expected = channel_by_channel(changes.expand(*shape[:-3], 3, 1, 1), lambda x, _, std: x / std)
    assert torch.equal(BY_CHANNEL.scale(changes), expected)


def test_limits_are_those_of_each_channel() -> None:
    black, white = BY_CHANNEL.limits
    assert black == pytest.approx((-0.25, -0.4, -0.5))
    assert white == pytest.approx((2.25, 1.6, 0.7 / 0.6))


def test_lists_arrays_and_whole_numbers_are_taken() -> None:
    assert Normalisation([0.1, 0.2, 0.3], [0.4, 0.5, 0.6]) == BY_CHANNEL  # type: ignore[arg-type]
    assert Normalisation(0, 1) == Normalisation(0.0, 1.0)
    assert Normalisation(np.array([0.1, 0.2, 0.3]), torch.tensor([0.4, 0.5, 0.6], dtype=torch.float64)) == BY_CHANNEL  # type: ignore[arg-type]
    assert Normalisation(np.float32(0.5), torch.tensor(0.5)) == NORMALISATION  # type: ignore[arg-type]
    BY_CHANNEL.check_channels(3)
    NORMALISATION.check_channels(7)
    with pytest.raises(InputError, match="is for 3 channels, and the images have 1"):
        BY_CHANNEL.check_channels(1)


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        ("0.5", 0.5, r"mean is '0.5'; it must be a number, or one number for each channel"),
        (0.5, [], r"std is \[\]; it must be a number"),
        ([0.5, None], 0.5, "mean is .*None"),
        (float("nan"), 0.5, "mean is nan"),
        ((0.5, 0.5), (0.5, 0.5, 0.5), "mean and std must be for the same channels"),
        ((0.5, 0.5), 0.5, "mean and std must be for the same channels"),
        ((123.7, 116.3, 103.5), (58.4, 57.1, 57.4), "mean must be from 0 to 1, .* by 255"),
        (np.zeros((3, 1, 1)), np.ones((3, 1, 1)), "mean is .*one number for each channel"),
        (0.5, 0, "std must be more than 0"),
        ((0.5, 0.5), (0.5, -1), "std must be more than 0"),
    ],
)
def test_what_is_no_normalisation_is_refused(mean: Any, std: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Normalisation(mean, std)
