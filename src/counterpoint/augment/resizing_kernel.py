"""Boxes of images enlarged by one Triton kernel. Its arithmetic is that of `resized_crop`, in integers throughout.

A program makes a tile of an image's pixels, in all channels. An output pixel has four input pixels. Columns are mixed
first and rounded to 8 bits, then rows, as Pillow does it in two passes.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

# mypy: disable-error-code="no-untyped-def, untyped-decorator"

_BLOCK, _WARPS = 512, 4


def resize_by_kernel(images_NCHW: Tensor, columns: tuple[Tensor, ...], rows: tuple[Tensor, ...], bits: int) -> Tensor:
    """Output columns, and then rows, made of two input ones each: the first one's place, and weights of so many bits.

    The tensors are int32, (N, W) for columns and (N, H) for rows.
    """
    number, channels, height, width = images_NCHW.shape
    resized_NCHW = torch.empty(images_NCHW.shape, dtype=torch.uint8, device=images_NCHW.device)
    tiles = triton.cdiv(height * width, _BLOCK)
    with torch.cuda.device_of(images_NCHW):  # where Triton launches
        resize_kernel[(number * tiles,)](
            images_NCHW.contiguous(), *(table.contiguous() for table in (*columns, *rows)), resized_NCHW,
            CHANNELS=channels, HEIGHT=height, WIDTH=width, BITS=bits, TILES=tiles, BLOCK=_BLOCK, num_warps=_WARPS,
        )  # fmt: skip
    return resized_NCHW


@triton.jit
def resize_kernel(
    images, columns, left_weights, right_weights, rows, upper_weights, lower_weights, resized,
    CHANNELS: tl.constexpr, HEIGHT: tl.constexpr, WIDTH: tl.constexpr, BITS: tl.constexpr,
    TILES: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """One tile of one image per program."""
    n, tile = tl.program_id(0).to(tl.int64) // TILES, tl.program_id(0) % TILES
    pixels: tl.constexpr = HEIGHT * WIDTH
    at = tile * BLOCK + tl.arange(0, BLOCK)
    real = at < pixels
    across, down = n * WIDTH + at % WIDTH, n * HEIGHT + at // WIDTH
    left, top = tl.load(columns + across, real, other=0), tl.load(rows + down, real, other=0)
    sides = left, tl.minimum(left + 1, WIDTH - 1)
    shares = tl.load(left_weights + across, real, other=0), tl.load(right_weights + across, real, other=0)
    upper_weight = tl.load(upper_weights + down, real, other=0)
    lower_weight = tl.load(lower_weights + down, real, other=0)
    for channel in range(CHANNELS):
        plane = images + (n * CHANNELS + channel) * pixels
        upper = _between(plane + top * WIDTH, sides, shares, real, BITS)
        lower = _between(plane + tl.minimum(top + 1, HEIGHT - 1) * WIDTH, sides, shares, real, BITS)
        value = _rounded(upper * upper_weight + lower * lower_weight, BITS)
        tl.store(resized + (n * CHANNELS + channel) * pixels + at, value.to(tl.uint8), real)


@triton.jit
def _between(row, sides, shares, real, BITS: tl.constexpr):
    left = tl.load(row + sides[0], real, other=0).to(tl.int32)
    right = tl.load(row + sides[1], real, other=0).to(tl.int32)
    return _rounded(left * shares[0] + right * shares[1], BITS)


@triton.jit
def _rounded(total, BITS: tl.constexpr):
    return (total + 2 ** (BITS - 1)) >> BITS
