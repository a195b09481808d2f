"""How pixels become what networks see (docs/paper.md, 7)."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from counterpoint.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

PerChannel = float | tuple[float, ...]
"""One number for all channels, or one for each."""


@dataclass(frozen=True)
class Normalisation:
    """Pixels in [0, 1] less `mean`, divided by `std`: one number for all channels, or one for each.

    Where each channel has its own, images have the shape (…, C, H, W). A list, an array or a tensor becomes a tuple.

    >>> import torch
    >>> from counterpoint.normalisation import Normalisation
    >>> normalisation = Normalisation(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
    >>> images_u8 = torch.randint(0, 256, (8, 3, 32, 32), dtype=torch.uint8)
    >>> normalisation.apply(images_u8 / 255).shape
    torch.Size([8, 3, 32, 32])
    """

    mean: PerChannel
    std: PerChannel

    def __post_init__(self) -> None:
        for key in ("mean", "std"):
            object.__setattr__(self, key, _checked(key, getattr(self, key)))
        if _count(self.mean) != _count(self.std):
            raise InputError(f"{self}: mean and std must be for the same channels")
        if min(_each(self.std)) <= 0:
            raise InputError(f"{self}: std must be more than 0")
        if not 0 <= min(_each(self.mean)) <= max(_each(self.mean)) <= 1:
            raise InputError(
                f"{self}: mean must be from 0 to 1, as the pixels are; of values up to 255, divide mean and std by 255"
            )

    @property
    def limits(self) -> tuple[PerChannel, PerChannel]:
        """What black and white become."""
        if isinstance(self.mean, tuple) and isinstance(self.std, tuple):
            pairs = list(zip(self.mean, self.std, strict=True))
            return tuple((0 - mean) / std for mean, std in pairs), tuple((1 - mean) / std for mean, std in pairs)
        assert isinstance(self.mean, float)
        assert isinstance(self.std, float)
        return (0 - self.mean) / self.std, (1 - self.mean) / self.std

    def check_channels(self, channels: int) -> None:
        """Raise unless images of so many channels can be normalised."""
        if _count(self.mean) not in (0, channels):
            raise InputError(f"{self} is for {_count(self.mean)} channels, and the images have {channels}")

    def apply(self, unit_images: "Tensor") -> "Tensor":
        """What networks see of pixels in [0, 1]."""
        return (unit_images - _like(self.mean, unit_images)) / _like(self.std, unit_images)

    def undo(self, seen_images: "Tensor") -> "Tensor":
        """The pixels again."""
        return seen_images * _like(self.std, seen_images) + _like(self.mean, seen_images)

    def scale(self, changes: "Tensor") -> "Tensor":
        """Changes of pixels, of the shape (…, 1, 1, 1), in the units of the network's input."""
        return changes / _like(self.std, changes)

    def clip(self, seen_images: "Tensor") -> "Tensor":
        """What networks see, kept between black and white."""
        low, high = (_like(limit, seen_images) for limit in self.limits)
        return seen_images.clamp(low, high)  # type: ignore[arg-type]


def _checked(key: str, value: Any) -> PerChannel:
    value = value.tolist() if hasattr(value, "tolist") else value  # NumPy's and torch's numbers
    numbers = value if isinstance(value, list | tuple) else [value]
    if not numbers or not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
        raise InputError(f"{key} is {value!r}; it must be a number, or one number for each channel")
    return tuple(float(n) for n in numbers) if isinstance(value, list | tuple) else float(value)


def _each(value: PerChannel) -> tuple[float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _count(value: PerChannel) -> int:
    """How many channels have a number of their own; 0 where one number is for all."""
    return len(value) if isinstance(value, tuple) else 0


def _like(value: PerChannel, images: "Tensor") -> "Tensor | float":
    """The number, or the channels' numbers as (C, 1, 1) on the images' device.

    They are filled in one by one. A copy from the CPU's memory could not be recorded in a CUDA graph.
    """
    if isinstance(value, float):
        return value
    import torch

    return torch.cat([images.new_full((1, 1, 1), number) for number in value])


NORMALISATION = Normalisation(mean=0.5, std=0.5)
"""The normalisation of counterpoint's own networks. Networks of other libraries have their own."""
