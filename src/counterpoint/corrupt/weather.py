"""Weather: snow, frost, fog."""

from functools import lru_cache

import numpy as np

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import blur_along, zoom
from counterpoint.corrupt.pixels import (
    Floats,
    Images,
    Scale,
    luminance,
    resized,
    to_bytes,
    to_unit,
)


def snow(
    images_NHWC: Images,
    draws: Draws,
    scale: Scale,
    *,
    mean: float,
    sd: float,
    flake_zoom: float,
    threshold: float,
    blur_radius: float,
    blur_sigma: float,
    blend: float,
) -> Images:
    """Falling flakes and the same flakes turned by 180°, over a whitened image."""
    noise = draws.normal("flakes", *scale.reference_shape, 1, mean=mean, sd=sd)
    flakes_NHW1 = zoom(noise, flake_zoom)
    flakes_NHW1[flakes_NHW1 < threshold] = 0
    degrees_N = draws.uniform("angle", low=-135, high=-45)
    fallen_NHW1 = blur_along(to_bytes(flakes_NHW1), degrees_N, blur_radius, blur_sigma)
    snow_NHW1 = resized(to_unit(fallen_NHW1)[..., 0], scale)[..., None]
    x_NHWC = to_unit(images_NHWC)
    whitened = np.maximum(x_NHWC, 1.5 * luminance(x_NHWC) + 0.5)
    return to_bytes(blend * x_NHWC + (1 - blend) * whitened + snow_NHW1 + snow_NHW1[:, ::-1, ::-1])


def frost(
    images_NHWC: Images,
    draws: Draws,
    _scale: Scale,
    *,
    image_weight: float,
    frost_weight: float,
    pictures: tuple[Floats | Images, ...],
) -> Images:
    """Each image under a random crop of one of the pictures, which are larger than the images.

    They have as many channels as the images, in [0, 1] or as bytes.
    """
    _, height, width, _ = images_NHWC.shape
    picture_N = draws.integers("picture", high=len(pictures))
    corner_N2 = draws.uniform("corner", 2)
    frozen_NHWC = np.empty(images_NHWC.shape, np.uint8)
    for frozen_HWC, image_HWC, number, corner_2 in zip(frozen_NHWC, images_NHWC, picture_N, corner_N2, strict=True):
        picture = pictures[number]
        # The last corner is never drawn, as in the original.
        top, left = (corner_2 * (np.array(picture.shape[:2]) - (height, width))).astype(np.int64)
        crop_HWC = picture[top : top + height, left : left + width]
        if crop_HWC.dtype == np.uint8:
            sums = _sums_of_bytes(image_weight, frost_weight)
            sums.take(image_HWC.astype(np.uint16) << 8 | crop_HWC, out=frozen_HWC, mode="clip")
        else:
            frozen_HWC[:] = to_bytes(image_weight * to_unit(image_HWC) + frost_weight * crop_HWC)
    return frozen_NHWC


@lru_cache(maxsize=8)
def _sums_of_bytes(image_weight: float, frost_weight: float) -> Images:
    """For each level of the image, the sums with all levels of the frost, in 8-bit units as in the original."""
    level = np.arange(256)
    return np.clip(image_weight * level[:, None] + frost_weight * level, 0, 255).astype(np.uint8).ravel()


def fog(images_NHWC: Images, draws: Draws, _scale: Scale, *, amplitude: float, wibble_decay: float) -> Images:
    """Add a plasma fractal, then scale so that the image's brightest value keeps its value under the thickest fog."""
    _, height, width, _ = images_NHWC.shape
    x_NHWC = to_unit(images_NHWC)
    highest_N111 = x_NHWC.max(axis=(1, 2, 3), keepdims=True)
    size = 1 << (max(height, width) - 1).bit_length()
    plasma_NHW = _plasma(draws, size, wibble_decay)[:, :height, :width]
    x_NHWC += amplitude * plasma_NHW[..., None]
    x_NHWC *= highest_N111
    x_NHWC /= highest_N111 + amplitude
    return to_bytes(x_NHWC)


def _plasma(draws: Draws, size: int, wibble_decay: float) -> Floats:
    """Diamond-square on a map that wraps around: each new point is the mean of four neighbours plus noise.

    The noise is wibble · U(−wibble, wibble), as in the original, so it is quadratic in wibble. The result spans [0, 1].
    """
    map_NSS = np.zeros((draws.count, size, size))
    wibble, step = 100.0, size
    while step >= 2:
        half = step // 2
        points = size // step
        noise = wibble * draws.uniform(f"wibble {step}", 3, points, points, low=-wibble, high=wibble)
        corner = map_NSS[:, ::step, ::step]
        pair = corner + _rolled(corner, 1, 1)
        middle = (pair + _rolled(pair, 1, 2)) / 4 + noise[:, 0]
        map_NSS[:, half::step, half::step] = middle
        for axis, down, right, wobble in ((1, 0, half, noise[:, 1]), (2, half, 0, noise[:, 2])):
            across = corner + _rolled(corner, 1, 3 - axis)
            along = middle + _rolled(middle, -1, axis)
            map_NSS[:, down::step, right::step] = (across + along) / 4 + wobble
        wibble, step = wibble / wibble_decay, half
    map_NSS -= map_NSS.min(axis=(1, 2), keepdims=True)
    return map_NSS / map_NSS.max(axis=(1, 2), keepdims=True)


def _rolled(map_NSS: Floats, by: int, axis: int) -> Floats:
    """np.roll by −`by`, without its overhead, which would count for small maps."""
    first, last = (slice(None),) * axis + (slice(by, None),), (slice(None),) * axis + (slice(None, by),)
    return np.concatenate((map_NSS[first], map_NSS[last]), axis=axis)
