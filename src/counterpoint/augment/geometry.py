"""Pillow's bilinear geometry on a batch of 8-bit images, bit for bit; `ops` is the public face that checks arguments.

Pillow maps the centre of each output pixel into the input in double arithmetic, interpolates between four neighbours
(the edge pixels repeated) and truncates. Where the centre falls outside the image, the result is black.

Never compile this module. Each product and each sum is a kernel of its own, so that no fused multiply-add can change a
bit.

Shapes: N images, C channels, H W pixels.
"""

import math
from functools import lru_cache

import torch
from torch import Tensor


def rotate(images_NCHW: Tensor, degrees_N: Tensor) -> Tensor:
    """`Image.rotate(degrees, BILINEAR)`. Pillow's shortcuts for right angles give what its general method gives."""
    return _affine(images_NCHW, rotation(degrees_N.to(images_NCHW.device), *images_NCHW.shape[2:]))


def rotation(degrees: Tensor, height: int, width: int) -> tuple[Tensor, ...]:
    """Pillow's matrix (a, …, f) of a rotation about the centre.

    Output pixel (x, y) is taken from (a·x + b·y + c, d·x + e·y + f).
    """
    centre_x, centre_y = width / 2, height / 2
    cos, sin = _cos_sin(degrees).unbind(-1)
    offset_x = cos * -centre_x + sin * -centre_y + centre_x
    offset_y = -sin * -centre_x + cos * -centre_y + centre_y
    return cos, sin, offset_x, -sin, cos, offset_y


def shear_x(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`Image.transform(size, AFFINE, (1, factor, 0, 0, 1, 0), BILINEAR)`."""
    y_H1 = _centres(images_NCHW.shape[2], images_NCHW.device)[:, None]
    return _slide_rows(images_NCHW, factor_N.double()[:, None, None] * y_H1)


def shear_y(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`Image.transform(size, AFFINE, (1, 0, 0, factor, 1, 0), BILINEAR)`."""
    return shear_x(images_NCHW.transpose(2, 3), factor_N).transpose(2, 3).contiguous()


def translate_x(images_NCHW: Tensor, pixels_N: Tensor) -> Tensor:
    """`Image.transform(size, AFFINE, (1, 0, pixels, 0, 1, 0), BILINEAR)`."""
    return _slide_rows(images_NCHW, pixels_N.double()[:, None, None])


def translate_y(images_NCHW: Tensor, pixels_N: Tensor) -> Tensor:
    """`Image.transform(size, AFFINE, (1, 0, 0, 0, 1, pixels), BILINEAR)`."""
    return translate_x(images_NCHW.transpose(2, 3), pixels_N).transpose(2, 3).contiguous()


def _affine(images_NCHW: Tensor, matrix: tuple[Tensor, ...]) -> Tensor:
    """Output pixel (x, y) is taken from (a·x + b·y + c, d·x + e·y + f); matrix is (a, …, f), each of N."""
    height, width = images_NCHW.shape[2:]
    a, b, c, d, e, f = (column[:, None, None] for column in matrix)
    x_W, y_H1 = _centres(width, images_NCHW.device), _centres(height, images_NCHW.device)[:, None]
    x_NHW, y_NHW = a * x_W + b * y_H1 + c, d * x_W + e * y_H1 + f
    inside_NHW = (x_NHW >= 0) & (x_NHW < width) & (y_NHW >= 0) & (y_NHW < height)
    left_NHW, right_share = _pixel_before(x_NHW)
    top_NHW, lower_share = _pixel_before(y_NHW)
    source, step = _bordered(images_NCHW)
    index = _index(left_NHW, top_NHW, inside_NHW, images_NCHW)
    upper = _between_columns(source, step, index, right_share)
    lower = _between_columns(source[..., width + 2 :], step[..., width + 2 :], index, right_share)
    return _truncate(lower.sub_(upper).mul_(lower_share.flatten(1)[:, None]).add_(upper), images_NCHW)


def _slide_rows(images_NCHW: Tensor, offset: Tensor) -> Tensor:
    """Output pixel (x, y) is taken from (x + offset, y), offset (N, H, 1) or (N, 1, 1): no vertical interpolation."""
    height, width = images_NCHW.shape[2:]
    top_H1 = torch.arange(height, dtype=torch.float64, device=images_NCHW.device)[:, None]
    x = _centres(width, images_NCHW.device) + offset
    left, right_share = _pixel_before(x)
    index = _index(left, top_H1, (x >= 0) & (x < width), images_NCHW)
    source, step = _bordered(images_NCHW)
    return _truncate(_between_columns(source, step, index, right_share.expand(-1, height, -1)), images_NCHW)


def _centres(size: int, device: torch.device) -> Tensor:
    return torch.arange(size, dtype=torch.float64, device=device) + 0.5


def _pixel_before(position: Tensor) -> tuple[Tensor, Tensor]:
    """The pixel whose centre lies at or before each position, and how far past that centre the position is."""
    position = position - 0.5
    first = position.floor()
    return first, position.sub_(first)


def _bordered(images_NCHW: Tensor) -> tuple[Tensor, Tensor]:
    """Each image with a border, and the step from each of its pixels to the next; the pixels of both are flattened.

    The border repeats the edge pixels once on every side and adds two black rows below.
    """
    n, channels, height, width = images_NCHW.shape
    source = images_NCHW.new_zeros(n, channels, height + 4, width + 2)
    source[:, :, 1:-3, 1:-1] = images_NCHW
    source[:, :, 1:-3, 0] = images_NCHW[..., 0]
    source[:, :, 1:-3, -1] = images_NCHW[..., -1]
    source[:, :, 0] = source[:, :, 1]
    source[:, :, -3] = source[:, :, -4]
    source = source.flatten(2)
    return source, source[..., 1:].short() - source[..., :-1]


def _index(left: Tensor, top: Tensor, inside: Tensor, images_NCHW: Tensor) -> Tensor:
    """Where the pixel (left, top) lies in the bordered image. Positions outside get a pixel with black neighbours."""
    n, channels, height, width = images_NCHW.shape
    index_NHW = left + (top * (width + 2) + (width + 3))
    index_NHW.masked_fill_(~inside, (height + 2) * (width + 2))
    return index_NHW.long().view(n, 1, height * width).expand(-1, channels, -1)


def _between_columns(source: Tensor, step: Tensor, index: Tensor, right_share_NHW: Tensor) -> Tensor:
    """left + (right − left) · share in float64, for each channel at the pixels `index`."""
    value = step.gather(2, index).double().mul_(right_share_NHW.flatten(1)[:, None])
    return value.add_(source.gather(2, index))


def _truncate(values: Tensor, like: Tensor) -> Tensor:
    # Through int32, because that conversion is vectorised on CPUs and float64 to uint8 is not.
    return values.int().to(torch.uint8).view(like.shape)


def _cos_sin(degrees: Tensor) -> Tensor:
    """Pillow's rounded cosine and sine of the inverse rotation, as float64 (…, 2).

    Whole degrees come from a table on the device. Others are computed in Python, for which a GPU has to wait.
    """
    if degrees.is_floating_point():
        pairs = [_rounded_cos_sin(value) for value in degrees.flatten().tolist()]
        return torch.tensor(pairs, dtype=torch.float64, device=degrees.device).view(*degrees.shape, 2)
    return _whole_degrees(degrees.device)[degrees.long() % 360]


@lru_cache(maxsize=8)
def _whole_degrees(device: torch.device) -> Tensor:
    pairs = [_rounded_cos_sin(degrees) for degrees in range(360)]
    return torch.tensor(pairs, dtype=torch.float64, device=device)


def _rounded_cos_sin(degrees: float) -> tuple[float, float]:
    angle = -math.radians(degrees % 360.0)
    return round(math.cos(angle), 15), round(math.sin(angle), 15)
