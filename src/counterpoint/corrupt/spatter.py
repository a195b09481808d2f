"""Spatter: drops of water with shaded edges, or mud. Edges, distances and shading are OpenCV's, in 8 bits."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import Indices, blur
from counterpoint.corrupt.pixels import Floats, Images, Scale, as_channels, resized, to_bytes, to_unit

Integers = NDArray[np.int32]

_WATER = np.array([175, 238, 238]) / 255
_MUD = np.array([63, 42, 20]) / 255

_WEAK_EDGE, _STRONG_EDGE = 50, 150
_FARTHEST = 20
_EMBOSS = np.array([[-2, -1, 0], [-1, 1, 1], [0, 1, 2]])
_TAN_22 = np.tan(np.pi / 8)
_DIAGONAL, _KNIGHT = 1.4, 2.1969  # OpenCV's lengths of the steps (1, 1) and (2, 1) in its 5×5 distance transform


def spatter(
    images_NHWC: Images,
    draws: Draws,
    scale: Scale,
    *,
    mean: float,
    sd: float,
    blur_sigma: float,
    threshold: float,
    intensity: float,
    mud: bool,
) -> Images:
    """Drops of water, or mud.

    For water, `intensity` is how bright the brightest drop is. For mud, it is the blur of the outline, in pixels.
    """
    channels = images_NHWC.shape[3]
    noise = draws.normal("liquid", *scale.reference_shape, 1, mean=mean, sd=sd)
    liquid_NHW1 = blur(noise, blur_sigma)
    liquid_NHW1[liquid_NHW1 < threshold] = 0
    if mud:
        cover_NHW1 = blur((liquid_NHW1 > threshold).astype(np.float64), intensity)
        cover_NHW1[cover_NHW1 < 0.8] = 0
        colour = as_channels(_MUD, channels)
        return _where_wet(images_NHWC, resized(cover_NHW1[..., 0], scale), lambda x, wet: x * (1 - wet) + wet * colour)
    colour = as_channels(_WATER, channels)
    shine_NHW = resized(_shine(to_bytes(liquid_NHW1)[..., 0]), scale)
    return _where_wet(images_NHWC, shine_NHW, lambda x, wet: x + intensity * wet * colour)


def _where_wet(images_NHWC: Images, wet_NHW: Floats, change: Callable[[Floats, Floats], Floats]) -> Images:
    """Change the pixels that are wet. The others are only truncated, which lowers some levels by one."""
    pixels_PC = images_NHWC.reshape(-1, images_NHWC.shape[3])
    changed_PC = to_bytes(np.arange(256) / 255.0).take(pixels_PC)
    wet = np.flatnonzero(wet_NHW)
    changed_PC[wet] = to_bytes(change(to_unit(pixels_PC[wet]), wet_NHW.ravel()[wet, None]))
    return changed_PC.reshape(images_NHWC.shape)


def _shine(liquid_NHW: Images) -> Floats:
    """Brightness in [0, 1] of the drops, embossed by the distance to their edges."""
    distance = np.minimum(_chamfer_distance(~_canny(liquid_NHW)), _FARTHEST)
    distance = np.floor(_weighted(distance, np.ones((3, 3))) / 9).astype(np.uint8)
    relief = np.clip(_weighted(_equalize(distance).astype(np.float64), _EMBOSS), 0, 255)
    shine_NHW = liquid_NHW * np.round(_weighted(relief, np.ones((3, 3))) / 9)
    highest = shine_NHW.max(axis=(1, 2), keepdims=True)
    return np.divide(shine_NHW, highest, out=np.zeros_like(shine_NHW), where=highest > 0)


def _weighted(x_NHW: Floats, weight_33: Floats) -> Floats:
    """The sum over the neighbours; mirrored, the edge not repeated."""
    _, height, width = x_NHW.shape
    padded = np.pad(x_NHW, ((0, 0), (1, 1), (1, 1)), mode="reflect")
    total = np.zeros_like(x_NHW)
    for down, right in zip(*np.nonzero(weight_33), strict=True):
        total += weight_33[down, right] * padded[:, down : down + height, right : right + width]
    return total


def _canny(images_NHW: Images) -> NDArray[np.bool_]:
    """OpenCV's Canny: 3×3 Sobel, |dx| + |dy|, thinning in four directions, hysteresis over eight neighbours."""
    padded = np.pad(images_NHW.astype(np.int32), ((0, 0), (1, 1), (1, 1)), mode="edge")
    down = padded[:, :-2] + 2 * padded[:, 1:-1] + padded[:, 2:]
    right = padded[:, :, :-2] + 2 * padded[:, :, 1:-1] + padded[:, :, 2:]
    dx, dy = down[:, :, 2:] - down[:, :, :-2], right[:, 2:] - right[:, :-2]
    strength = np.abs(dx) + np.abs(dy)
    edge = np.zeros(strength.shape, dtype=bool)
    weak = np.flatnonzero(strength > _WEAK_EDGE)
    edge.ravel()[weak] = _is_ridge(strength, dx, dy, weak)
    joined = np.zeros((3, 3, 3), dtype=bool)
    joined[1] = True
    strong: NDArray[np.bool_] = ndimage.binary_propagation(
        edge & (strength > _STRONG_EDGE), structure=joined, mask=edge
    )
    return strong


def _is_ridge(strength: Integers, dx: Integers, dy: Integers, where: Indices) -> NDArray[np.bool_]:
    """Whether no neighbour along the gradient is stronger, for the pixels of these flat indices.

    Of two equally strong neighbours the first counts as a ridge; along a diagonal neither does.
    """
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    line = padded.shape[2]
    image, pixel = np.divmod(where, strength[0].size)
    row, column = np.divmod(pixel, strength.shape[2])
    place = (image * padded.shape[1] + 1 + row) * line + 1 + column
    here, dx, dy = (values.ravel()[where] for values in (strength, dx, dy))
    flat, steep = np.abs(dy) < _TAN_22 * np.abs(dx), np.abs(dy) > np.abs(dx) / _TAN_22
    slanting = ~flat & ~steep
    down = np.where(flat, 0, 1)
    right = np.where(steep, 0, np.where(slanting & ((dx < 0) != (dy < 0)), -1, 1))
    before, after = (padded.ravel()[place + side * (down * line + right)] for side in (-1, 1))
    return (here > before) & ((here > after) | ((here == after) & ~slanting))


def _chamfer_distance(free_NHW: NDArray[np.bool_]) -> Floats:
    """The distance to the nearest pixel that is not free, made of steps (1, 0), (1, 1) and (2, 1)."""
    distance_NHW = np.full(free_NHW.shape, np.inf)
    here_2HW = np.indices(free_NHW.shape[1:], dtype=np.int32)
    for distance_HW, free_HW in zip(distance_NHW, free_NHW, strict=True):
        if not free_HW.all():
            nearest_2HW = ndimage.distance_transform_edt(free_HW, return_distances=False, return_indices=True)
            row, column = np.abs(nearest_2HW - here_2HW)
            long, short = np.maximum(row, column), np.minimum(row, column)
            knights = np.minimum(short, long - short)
            distance_HW[:] = (long - short - knights) + _DIAGONAL * (short - knights) + _KNIGHT * knights
    return distance_NHW


def _equalize(images_NHW: Images) -> Images:
    """OpenCV's histogram equalisation: the lowest level present becomes 0, the highest 255."""
    equalized = np.empty_like(images_NHW)
    for equal_HW, image_HW in zip(equalized, images_NHW, strict=True):
        count = np.bincount(image_HW.ravel(), minlength=256)
        lowest = image_HW.min()
        table = np.round((count.cumsum() - count[lowest]) * 255 / max(image_HW.size - count[lowest], 1))
        equal_HW[:] = lowest if count[lowest] == image_HW.size else table.clip(0).astype(np.uint8)[image_HW]
    return equalized
