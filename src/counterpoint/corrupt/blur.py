"""Blurs: out of focus, through frosted glass, by motion, by zooming, Gaussian."""

import math

import numpy as np
from scipy import ndimage, signal

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import blur, blur_along, zoom
from counterpoint.corrupt.pixels import Floats, Images, length_scale, to_bytes, to_unit


def gaussian_blur(images_NHWC: Images, _draws: Draws, *, sigma: float) -> Images:
    return to_bytes(blur(to_unit(images_NHWC), sigma * length_scale(images_NHWC)))


def defocus_blur(images_NHWC: Images, _draws: Draws, *, radius: float, alias_sigma: float) -> Images:
    kernel = _disk(radius, alias_sigma, length_scale(images_NHWC))
    return to_bytes(ndimage.correlate(to_unit(images_NHWC), kernel[None, :, :, None], mode="mirror"))


def _disk(radius: float, alias_sigma: float, scale: float) -> Floats:
    """A normalised disk of ones, smoothed by a Gaussian that is cut off one reference pixel from its centre (3×3).

    It is computed in single precision, as in the original. Its rounding decides whether the weights sum to a little
    more or a little less than 1, and so whether truncation lowers the values of a flat region.
    """
    reach = math.floor(radius * scale)
    offset = np.arange(-reach, reach + 1)
    disk = (offset[:, None] ** 2 + offset**2 <= (radius * scale) ** 2).astype(np.float32)
    softness = max(1, round(scale))
    weight = np.exp(-(np.arange(-softness, softness + 1) ** 2) / (2 * (alias_sigma * scale) ** 2))
    weight = (weight / weight.sum()).astype(np.float32)
    return signal.convolve2d(disk / disk.sum(), np.outer(weight, weight)).astype(np.float64)


def glass_blur(images_NHWC: Images, draws: Draws, *, sigma: float, max_shift: int, iterations: int) -> Images:
    """Blur, let each pixel show one up to `max_shift` rows and columns away, blur again."""
    scale = length_scale(images_NHWC)
    shift = max(1, round(max_shift * scale))
    images_NHWC = to_bytes(blur(to_unit(images_NHWC), sigma * scale))
    for iteration in range(iterations):
        images_NHWC = _scatter(images_NHWC, draws, f"shift {iteration}", shift)
    return to_bytes(blur(to_unit(images_NHWC), sigma * scale))


def _scatter(images_NHWC: Images, draws: Draws, purpose: str, shift: int) -> Images:
    """Copy each pixel from an offset drawn from −shift … shift − 1, except in a border as wide as in the original."""
    number, height, width, _ = images_NHWC.shape
    inner_h, inner_w = slice(shift + 1, height - shift + 1), slice(shift + 1, width - shift + 1)
    row, column = np.mgrid[inner_h, inner_w]
    offset_N2HW = draws.integers(purpose, 2, *row.shape, low=-shift, high=shift)
    scattered = images_NHWC.copy()
    image_N11 = np.arange(number)[:, None, None]
    scattered[:, inner_h, inner_w] = images_NHWC[image_N11, row + offset_N2HW[:, 0], column + offset_N2HW[:, 1]]
    return scattered


def motion_blur(images_NHWC: Images, draws: Draws, *, radius: float, sigma: float) -> Images:
    scale = length_scale(images_NHWC)
    return blur_along(images_NHWC, draws.uniform("angle", low=-45, high=45), radius * scale, sigma * scale)


def zoom_blur(images_NHWC: Images, _draws: Draws, *, end: float, step: float) -> Images:
    """The mean of the image and its zooms by np.arange(1, end, step), computed in single precision as in the original.

    The rounding of np.arange decides whether `end` is among the factors, which is also as in the original.
    """
    x_NHWC = to_unit(images_NHWC).astype(np.float32)
    factors = np.arange(1, end, step)
    zoomed_NHWC = np.zeros_like(x_NHWC)
    for factor in factors:
        zoomed_NHWC += zoom(x_NHWC, float(factor))
    return to_bytes((x_NHWC + zoomed_NHWC) / np.float32(len(factors) + 1))
