"""Pillow's tone operations on a batch of 8-bit images, bit for bit; `ops` is the public face that checks arguments.

Shapes: N images, C channels, H W pixels, V the 256 values a pixel can have.
"""

import torch
from torch import Tensor

from counterpoint.errors import InputError


def autocontrast(images_NCHW: Tensor) -> Tensor:
    """`ImageOps.autocontrast`: each channel stretched to 0 … 255, by int(value · scale + offset) in doubles."""
    low = images_NCHW.amin((2, 3), keepdim=True).double()
    span = images_NCHW.amax((2, 3), keepdim=True) - low
    # A tensor of 255, since torch divides a number by a tensor by multiplying with the reciprocal, which rounds twice.
    scale = torch.where(span > 0, torch.full_like(span, 255) / span, 1)
    offset = torch.where(span > 0, -low * scale, 0)
    return images_NCHW.double().mul_(scale).add_(offset).int().to(torch.uint8)


def equalize(images_NCHW: Tensor) -> Tensor:
    """`ImageOps.equalize`: each channel through the table of its cumulative histogram, in integers."""
    values = images_NCHW.flatten(2).long()
    one = torch.ones((), dtype=torch.int64, device=values.device)
    counts_NCV = values.new_zeros(*values.shape[:2], 256).scatter_add_(2, values, one.expand_as(values))
    brightest = counts_NCV.gather(2, values.amax(2, keepdim=True))
    step = (values.shape[2] - brightest) // 255
    below_NCV = counts_NCV.cumsum(2) - counts_NCV
    table_NCV = ((below_NCV + step // 2) // step.clamp(min=1)).clamp(max=255)
    table_NCV = torch.where(step > 0, table_NCV, torch.arange(256, device=values.device))
    return table_NCV.to(torch.uint8).gather(2, values).reshape(images_NCHW.shape)


def posterize(images_NCHW: Tensor, bits_N: Tensor) -> Tensor:
    """`ImageOps.posterize`: only the highest `bits` bits of each value kept."""
    kept_N = (255 << (8 - bits_N.long())) & 255
    return images_NCHW & _each(kept_N.to(torch.uint8))


def solarize(images_NCHW: Tensor, threshold_N: Tensor) -> Tensor:
    """`ImageOps.solarize`: values of at least `threshold` inverted."""
    inverted = images_NCHW >= _each(threshold_N.double().ceil().clamp(0, 256).short())
    return images_NCHW ^ (inverted.to(torch.uint8) * 255)


def colour(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`ImageEnhance.Color`: away from (or, below 1, towards) the grey image."""
    return _blend(_grey(images_NCHW), images_NCHW, factor_N)


def contrast(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`ImageEnhance.Contrast`: away from the image's mean grey."""
    grey = _grey(images_NCHW).flatten(1)
    pixels = grey.shape[1]
    mean_N = (2 * grey.sum(1) + pixels) // (2 * pixels)
    return _blend(_each(mean_N), images_NCHW, factor_N)


def brightness(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`ImageEnhance.Brightness`: away from black."""
    return _blend(torch.zeros((), device=images_NCHW.device), images_NCHW, factor_N)


def sharpness(images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`ImageEnhance.Sharpness`: away from the smoothed image."""
    return _blend(_smooth(images_NCHW), images_NCHW, factor_N)


def _each(parameter_N: Tensor) -> Tensor:
    return parameter_N[:, None, None, None]


def _blend(base: Tensor, images_NCHW: Tensor, factor_N: Tensor) -> Tensor:
    """`Image.blend`: base + factor · (image − base) in float32, clipped and truncated."""
    base = base.float()
    change = (images_NCHW - base).mul_(_each(factor_N.float()))
    return change.add_(base).clamp_(0, 255).int().to(torch.uint8)


def _grey(images_NCHW: Tensor) -> Tensor:
    """`Image.convert("L")`: ITU-R 601 luma in 16-bit fixed point."""
    channels = images_NCHW.shape[1]
    if channels == 1:
        return images_NCHW
    if channels != 3:
        raise InputError(f"images have {channels} channels; colour and contrast are defined for 1 (grey) or 3 (RGB)")
    red, green, blue = images_NCHW.int().split(1, dim=1)
    return (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16


def _smooth(images_NCHW: Tensor) -> Tensor:
    """`ImageFilter.SMOOTH`: (the 3×3 neighbourhood + 4 · the pixel) / 13, rounded; the outermost pixels stay.

    Pillow adds in float32. No multiple of 1/13 is near a half, so integer arithmetic rounds to the same values.
    """
    images = images_NCHW.int()
    rows = images[:, :, :-2] + images[:, :, 1:-1] + images[:, :, 2:]
    total = rows[..., :-2] + rows[..., 1:-1] + rows[..., 2:] + 4 * images[:, :, 1:-1, 1:-1]
    images[:, :, 1:-1, 1:-1] = (2 * total + 13) // 26
    return images
