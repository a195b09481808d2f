"""Blurs: out of focus, through frosted glass, by motion, by zooming, Gaussian."""

import numpy as np
from numpy.typing import NDArray

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import Indices, blur, blur_along, correlate_symmetric, zoom
from counterpoint.corrupt.pixels import Floats, Images, Scale, to_bytes, to_unit


def gaussian_blur(images_NHWC: Images, _draws: Draws, scale: Scale, *, sigma: float) -> Images:
    return to_bytes(blur(to_unit(images_NHWC), sigma * scale.factor))


def defocus_blur(
    images_NHWC: Images,
    _draws: Draws,
    scale: Scale,
    *,
    radius: float,
    grid_radius: float,
    alias_sigma: float,
    alias_radius: float,
) -> Images:
    """Spread each pixel over a disk with a soft edge.

    A disk that reaches the next pixels goes on doing so in smaller images. Otherwise it would change nothing there.
    """
    disk = _disk(max(radius * scale.factor, min(radius, 1.0)), round(grid_radius * scale.factor))
    kernel = _softened(disk, alias_sigma * scale.factor, max(1, round(alias_radius * scale.factor)))
    return to_bytes(correlate_symmetric(to_unit(images_NHWC), kernel))


def _disk(radius: float, grid_radius: int) -> Floats:
    """A disk of ones in the middle of a square grid, normalised.

    It and its softening are computed in single precision, as in the original. The rounding decides whether the weights
    sum to a little more or a little less than 1, and so whether truncation lowers the values of a flat region.
    """
    offset = np.arange(-grid_radius, grid_radius + 1)
    disk = (offset[:, None] ** 2 + offset**2 <= radius**2).astype(np.float32)
    return disk / disk.sum()


def _softened(disk: Floats, sigma: float, radius: int) -> Floats:
    """The disk smoothed by a Gaussian that is cut off at `radius`.

    Where the disk touches the border of its grid, the Gaussian sees the grid mirrored there, as in the original. The
    weights of a large disk then sum to more than 1.
    """
    weight = np.exp(-(np.arange(-radius, radius + 1) ** 2) / (2 * sigma**2))
    weight = (weight / weight.sum()).astype(np.float32)
    from scipy.signal import convolve2d  # takes half a second to import, and only a disk needs it

    soft = convolve2d(np.pad(disk, radius, mode="reflect"), np.outer(weight, weight), mode="valid")
    used = np.flatnonzero(soft.any(axis=0))
    return soft[used[0] : used[-1] + 1, used[0] : used[-1] + 1].astype(np.float64)


def glass_blur(
    images_NHWC: Images, draws: Draws, scale: Scale, *, sigma: float, max_shift: int, iterations: int, in_place: bool
) -> Images:
    """Blur, let each pixel show one up to `max_shift` rows and columns away, blur again."""
    shift = max(1, round(max_shift * scale.factor))
    images_NHWC = to_bytes(blur(to_unit(images_NHWC), sigma * scale.factor))
    for iteration in range(iterations):
        images_NHWC = _scatter(images_NHWC, draws, f"shift {iteration}", shift, in_place)
    return to_bytes(blur(to_unit(images_NHWC), sigma * scale.factor))


def _scatter(images_NHWC: Images, draws: Draws, purpose: str, shift: int, in_place: bool) -> Images:
    """Copy each pixel from an offset drawn from −shift … shift − 1, except in a border as wide as in the original.

    `in_place` is how the original does it: from the last pixel to the first, so that a pixel that reads one below or to
    the right sees what was copied there.
    """
    number, height, width, channels = images_NHWC.shape
    inner = (slice(None), slice(shift + 1, height - shift + 1), slice(shift + 1, width - shift + 1))
    source_NHW = np.arange(number * height * width).reshape(number, height, width)
    copied_NHW = np.zeros(source_NHW.shape, dtype=bool)
    copied_NHW[inner] = True
    offset_N2HW = draws.integers(purpose, 2, *source_NHW[inner].shape[1:], low=-shift, high=shift)
    source_NHW[inner] += offset_N2HW[:, 0] * width + offset_N2HW[:, 1]
    source = source_NHW.ravel()
    if in_place:
        source = _followed(source, copied_NHW.ravel())
    return images_NHWC.reshape(-1, channels)[source].reshape(images_NHWC.shape)


def _followed(source: Indices, copied: NDArray[np.bool_]) -> Indices:
    """The pixel whose first value each pixel ends up with, when each is copied from its source, the last pixel first.

    A source with a higher index was copied before, so its own source counts. All such chains are followed at once, and
    each step doubles how far: what a source has found so far is taken over whole.
    """
    found = source.copy()
    chained = copied[source] & (source > np.arange(len(source)))
    open_ends = np.flatnonzero(chained)
    while len(open_ends):
        ahead = found[open_ends]
        found[open_ends], chained[open_ends] = found[ahead], chained[ahead]
        open_ends = open_ends[chained[open_ends]]
    return found


def motion_blur(images_NHWC: Images, draws: Draws, scale: Scale, *, radius: float, sigma: float) -> Images:
    degrees_N = draws.uniform("angle", low=-45, high=45)
    return blur_along(images_NHWC, degrees_N, radius * scale.factor, sigma * scale.factor)


def zoom_blur(images_NHWC: Images, _draws: Draws, _scale: Scale, *, end: float, step: float) -> Images:
    """The mean of the image and its zooms by np.arange(1, end, step), computed in single precision as in the original.

    The rounding of np.arange decides whether `end` is among the factors, which is also as in the original.
    """
    x_NHWC = to_unit(images_NHWC).astype(np.float32)
    factors = np.arange(1, end, step)
    zoomed_NHWC = np.zeros_like(x_NHWC)
    for factor in factors:
        zoomed_NHWC += zoom(x_NHWC, float(factor))
    return to_bytes((x_NHWC + zoomed_NHWC) / np.float32(len(factors) + 1))
