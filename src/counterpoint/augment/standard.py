"""Random left-right flip and crop, before any other augmentation (docs/paper.md, 10), and 8-bit images: checked,
divided into chunks, and as numbers.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.seeding import Stream


@dataclass(frozen=True)
class CropPlan:
    """For each image whether it is flipped, and where its crop starts in the padded image (0 … 2·padding)."""

    flip_N: Tensor
    top_N: Tensor
    left_N: Tensor
    padding: int


def sample_crop(indices_N: Tensor, stream: Stream, *, flip: bool, padding: int) -> CropPlan:
    """A flip with probability ½ (if `flip`) and a crop anywhere in the image padded by `padding` on each side."""
    flip_N = stream.integers(indices_N, 1, 2)[:, 0].bool() if flip else torch.zeros_like(indices_N, dtype=torch.bool)
    offsets_N3 = stream.integers(indices_N, 3, 2 * padding + 1)
    return CropPlan(flip_N, offsets_N3[:, 1], offsets_N3[:, 2], padding)


def apply_crop(images_NCHW: Tensor, plan: CropPlan) -> Tensor:
    """Each image flipped and cropped as planned, black outside; same size and type as before."""
    if images_NCHW.dtype != torch.uint8 or images_NCHW.dim() != 4:
        raise InputError(
            f"images are {images_NCHW.dtype} of shape {tuple(images_NCHW.shape)}; they must be uint8 (N, C, H, W), "
            "from 0 to 255 and not normalised"
        )
    number, channels, height, width = images_NCHW.shape
    padded = torch.nn.functional.pad(images_NCHW, (plan.padding,) * 4)
    rows_NH = plan.top_N[:, None] + torch.arange(height, device=images_NCHW.device)
    across = torch.arange(width, device=images_NCHW.device)
    cols_NW = plan.left_N[:, None] + torch.where(plan.flip_N[:, None], across.flip(0), across)
    image_N = torch.arange(number, device=images_NCHW.device)
    channel_C = torch.arange(channels, device=images_NCHW.device)
    return padded[
        image_N[:, None, None, None],
        channel_C[None, :, None, None],
        rows_NH[:, None, :, None],
        cols_NW[:, None, None, :],
    ]


def check_images(images_NCHW: Tensor) -> None:
    if not isinstance(images_NCHW, Tensor):
        raise InputError(
            f"images are a {type(images_NCHW).__name__}; they must be a tensor (torch.from_numpy makes one)"
        )
    if images_NCHW.dtype != torch.uint8:
        raise InputError(f"images are {images_NCHW.dtype}; they must be torch.uint8, values 0 to 255")
    if images_NCHW.ndim != 4 or 0 in images_NCHW.shape[1:]:
        raise InputError(
            f"images have shape {tuple(images_NCHW.shape)}; it must be (N, C, H, W) with C, H, W at least 1"
        )
    if images_NCHW.shape[3] in (1, 3) and images_NCHW.shape[1] > 4:  # no image is so narrow
        raise InputError(
            f"images have shape {tuple(images_NCHW.shape)}, with the channels last; it must be (N, C, H, W): "
            "images.permute(0, 3, 1, 2)"
        )


def images_per_chunk(images_NCHW: Tensor) -> int:
    """How many images to work on at once, so that on a CPU the float64 intermediates stay in its cache."""
    values = 2**18 if images_NCHW.device.type == "cpu" else 2**24
    return max(1, values // math.prod(images_NCHW.shape[1:]))


def to_unit(images_u8: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """8-bit images as numbers in [0, 1], the same bits on every device."""
    return images_u8.to(dtype) / white(dtype, images_u8.device)


def white(dtype: torch.dtype, device: torch.device) -> Tensor:
    """255 as a tensor to divide by: CUDA divides by a number by multiplying with its reciprocal, and rounds twice."""
    return torch.full((), 255, dtype=dtype, device=device)
