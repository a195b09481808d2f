"""Random resized crop: a part of each image, enlarged to the image's size, equal to Pillow's result bit for bit.

The box is drawn as torchvision's RandomResizedCrop describes it. It is a share of the area with a ratio of width to
height between 3/4 and 4/3. The result is that of `image.crop(box).resize(image.size, Image.Resampling.BILINEAR)`.

Pillow computes two weights for each output column and row in doubles, and rounds them to 22 bits. It mixes columns
first and rounds to 8 bits, then rows. Never compile this module: a fused multiply-add would change bits.

Shapes: N images, C channels, H W pixels, T tries.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from counterpoint.augment.standard import check_images, images_per_chunk
from counterpoint.devices import has_triton
from counterpoint.errors import InputError
from counterpoint.seeding import Stream

RATIOS = (3 / 4, 4 / 3)  # of a box's width to its height
BITS = 22  # of Pillow's rounded weights
_TRIES = 10


@dataclass(frozen=True, eq=False)
class BoxPlan:
    """For each image the box that is enlarged, in whole pixels, and whether the result is flipped."""

    flip_N: Tensor
    top_N: Tensor
    left_N: Tensor
    height_N: Tensor
    width_N: Tensor

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        return self.flip_N, self.top_N, self.left_N, self.height_N, self.width_N

    def __len__(self) -> int:
        return len(self.flip_N)

    def __getitem__(self, part: slice) -> "BoxPlan":
        return BoxPlan(*(tensor[part] for tensor in self.tensors))


class Taps(NamedTuple):
    """What each output column (or row) is made of: an input column and the one after it, with weights of 22 bits."""

    first: Tensor
    first_weight: Tensor
    second_weight: Tensor


def sample_box(
    indices_N: Tensor, stream: Stream, *, flip: bool, scale: tuple[float, float], size: tuple[int, int]
) -> BoxPlan:
    """A flip with probability ½ (if `flip`), and a box with a share of the area that is uniform between `scale`.

    `size` is height and width of the images. The first of ten tries that fits into the image is taken. If none does,
    the box is the middle of the image, as large as a ratio within RATIOS allows.
    """
    uniform = stream.uniform(indices_N, 3 + 2 * _TRIES)
    flips_N, down_N, across_N = uniform[:, :3].unbind(1)
    heights_NT, widths_NT = _tries(uniform[:, 3:], scale, size)
    fits_NT = (heights_NT >= 1) & (heights_NT <= size[0]) & (widths_NT >= 1) & (widths_NT <= size[1])
    has_fit_N, first_N1 = fits_NT.any(1), fits_NT.byte().argmax(1, keepdim=True)
    middle_height, middle_width = _middle(*size)
    height_N = torch.where(has_fit_N, heights_NT.gather(1, first_N1)[:, 0], middle_height)
    width_N = torch.where(has_fit_N, widths_NT.gather(1, first_N1)[:, 0], middle_width)
    room_N, free_N = size[0] - height_N, size[1] - width_N
    return BoxPlan(
        flip_N=(flips_N >= 0.5) & flip,
        top_N=torch.where(has_fit_N, (down_N * (room_N + 1)).floor(), (room_N / 2).floor()).long(),
        left_N=torch.where(has_fit_N, (across_N * (free_N + 1)).floor(), (free_N / 2).floor()).long(),
        height_N=height_N.long(),
        width_N=width_N.long(),
    )


def _tries(uniform: Tensor, scale: tuple[float, float], size: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Heights and widths of the boxes tried, (N, T) each, as whole numbers in float64."""
    share_NT, tilt_NT = uniform.unflatten(1, (_TRIES, 2)).unbind(2)
    area_NT = (scale[0] + share_NT * (scale[1] - scale[0])) * (size[0] * size[1])
    low, high = (math.log(ratio) for ratio in RATIOS)
    ratio_NT = (low + tilt_NT * (high - low)).exp()
    return (area_NT / ratio_NT).sqrt().round(), (area_NT * ratio_NT).sqrt().round()


def _middle(height: int, width: int) -> tuple[int, int]:
    """Height and width of the largest box whose ratio is within RATIOS."""
    if width / height < RATIOS[0]:
        return round(width / RATIOS[0]), width
    if width / height > RATIOS[1]:
        return height, round(height * RATIOS[1])
    return height, width


def resize_boxes(images_NCHW: Tensor, plan: BoxPlan) -> Tensor:
    """Each image's box, enlarged to the size of the image, and flipped where that is planned."""
    check_images(images_NCHW)
    if len(plan) != len(images_NCHW):
        raise InputError(
            f"the plan is for {len(plan)} images but there are {len(images_NCHW)} images; the two numbers must be equal"
        )
    if images_NCHW.is_cuda and has_triton():
        from counterpoint.augment.resizing_kernel import resize_by_kernel

        return resize_by_kernel(images_NCHW, *taps_of(plan, *images_NCHW.shape[2:]), BITS)
    at_once = images_per_chunk(images_NCHW)
    parts = [slice(start, start + at_once) for start in range(0, len(plan), at_once)]
    return torch.cat([images_NCHW[:0], *(_resize(images_NCHW[part], plan[part]) for part in parts)])


def taps_of(plan: BoxPlan, height: int, width: int) -> tuple[Taps, Taps]:
    """For each image, what its output columns (N, W) are made of, the flip included, and its output rows (N, H)."""
    columns, rows = _taps(plan.left_N, plan.width_N, width), _taps(plan.top_N, plan.height_N, height)
    return Taps(*(torch.where(plan.flip_N[:, None], values.flip(1), values) for values in columns)), rows


def _taps(start_N: Tensor, length_N: Tensor, size: int) -> Taps:
    """`length` pixels from `start` on become `size`: Pillow's weights, step by step.

    Pillow may count a third pixel, where its sum is rounded up to a whole number. That pixel's weight is about 10^−16,
    which can change the sum of the weights but is rounded to 0 itself.
    """
    length_N1 = length_N[:, None]
    # The divisor is a tensor because CUDA divides by a number by multiplying with its reciprocal, which rounds twice.
    scale_N1 = length_N1.double() / torch.full_like(length_N1, size).double()
    centre_NS = (torch.arange(size, dtype=torch.float64, device=length_N.device) + 0.5) * scale_N1
    first_NS = (centre_NS - 1 + 0.5).long().clamp(min=0)
    end_NS = (centre_NS + 1 + 0.5).long().minimum(length_N1)
    weights = [_weight(first_NS + place, end_NS, centre_NS) for place in range(3)]
    total_NS = weights[0] + weights[1] + weights[2]
    rounded = ((weight / total_NS * 2**BITS + 0.5).int() for weight in weights[:2])
    return Taps((first_NS + start_N[:, None]).int(), *rounded)


def _weight(pixel_NS: Tensor, end_NS: Tensor, centre_NS: Tensor) -> Tensor:
    """A triangle around the centre; 0 for pixels from `end` on."""
    height_NS = 1 - (pixel_NS - centre_NS + 0.5).abs()
    return torch.where(pixel_NS < end_NS, height_NS.clamp(min=0), 0.0)


def _resize(images_NCHW: Tensor, plan: BoxPlan) -> Tensor:
    columns, rows = taps_of(plan, *images_NCHW.shape[2:])
    return _mix(_mix(images_NCHW, columns, axis=3), rows, axis=2)


def _mix(images_NCHW: Tensor, taps: Taps, axis: int) -> Tensor:
    """Each output column (axis 3) or row (axis 2) from the two that it is made of, rounded to 8 bits."""
    first_NS, second_NS = taps.first.long(), (taps.first + 1).clamp(max=images_NCHW.shape[axis] - 1).long()
    first = _take(images_NCHW, first_NS, axis).int().mul_(_along(taps.first_weight, axis))
    second = _take(images_NCHW, second_NS, axis).int().mul_(_along(taps.second_weight, axis))
    return first.add_(second).add_(1 << (BITS - 1)).bitwise_right_shift_(BITS).to(torch.uint8)


def _take(images_NCHW: Tensor, index_NS: Tensor, axis: int) -> Tensor:
    """The columns or rows that `index` names for each image."""
    if axis == 3:
        return images_NCHW.gather(3, _along(index_NS, 3).expand_as(images_NCHW))
    # As rows of one matrix, which are copied whole.
    number, channels, height, width = images_NCHW.shape
    first_NC1 = torch.arange(number * channels, device=images_NCHW.device).view(number, channels, 1) * height
    taken = images_NCHW.reshape(-1, width).index_select(0, (first_NC1 + index_NS[:, None]).flatten())
    return taken.view_as(images_NCHW)


def _along(values_NS: Tensor, axis: int) -> Tensor:
    return values_NS[:, None, None] if axis == 3 else values_NS[:, None, :, None]
