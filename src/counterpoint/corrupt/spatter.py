"""Spatter: drops of water with shaded edges, or mud. Edges, distances and shading are OpenCV's, in 8 bits."""

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import blur
from counterpoint.corrupt.pixels import Floats, Images, Scale, as_channels, resized, to_bytes, to_unit

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
    x_NHWC = to_unit(images_NHWC)
    if mud:
        cover_NHW1 = blur((liquid_NHW1 > threshold).astype(np.float64), intensity)
        cover_NHW1[cover_NHW1 < 0.8] = 0
        cover_NHW1 = resized(cover_NHW1[..., 0], scale)[..., None]
        return to_bytes(x_NHWC * (1 - cover_NHW1) + cover_NHW1 * as_channels(_MUD, channels))
    shine_NHW1 = resized(_shine(to_bytes(liquid_NHW1)[..., 0]), scale)[..., None]
    return to_bytes(x_NHWC + intensity * shine_NHW1 * as_channels(_WATER, channels))


def _shine(liquid_NHW: Images) -> Floats:
    """Brightness in [0, 1] of the drops, embossed by the distance to their edges."""
    distance = np.minimum(_chamfer_distance(~_canny(liquid_NHW)), _FARTHEST)
    distance = np.floor(_box(distance)).astype(np.uint8)
    relief = ndimage.correlate(_equalize(distance).astype(np.float64), _EMBOSS[None], mode="mirror")
    relief = np.round(_box(np.clip(relief, 0, 255)))
    shine_NHW = liquid_NHW * relief
    highest = shine_NHW.max(axis=(1, 2), keepdims=True)
    return np.divide(shine_NHW, highest, out=np.zeros_like(shine_NHW), where=highest > 0)


def _box(x_NHW: Floats) -> Floats:
    total: Floats = ndimage.correlate(x_NHW, np.ones((1, 3, 3)), mode="mirror")
    return total / 9


def _canny(images_NHW: Images) -> NDArray[np.bool_]:
    """OpenCV's Canny: 3×3 Sobel, |dx| + |dy|, thinning in four directions, hysteresis over eight neighbours."""
    values = images_NHW.astype(np.int64)
    dx, dy = (_sobel(values, axis) for axis in (2, 1))
    strength = np.abs(dx) + np.abs(dy)
    edge = (strength > _WEAK_EDGE) & _is_ridge(strength, dx, dy)
    joined = np.zeros((3, 3, 3), dtype=bool)
    joined[1] = True
    strong: NDArray[np.bool_] = ndimage.binary_propagation(
        edge & (strength > _STRONG_EDGE), structure=joined, mask=edge
    )
    return strong


def _sobel(values_NHW: NDArray[np.int64], axis: int) -> NDArray[np.int64]:
    difference = ndimage.correlate1d(values_NHW, [-1, 0, 1], axis, mode="nearest")
    gradient: NDArray[np.int64] = ndimage.correlate1d(difference, [1, 2, 1], 3 - axis, mode="nearest")
    return gradient


def _is_ridge(strength: NDArray[np.int64], dx: NDArray[np.int64], dy: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether no neighbour along the gradient is stronger.

    Of two equally strong neighbours the first counts as a ridge; along a diagonal neither does.
    """
    padded = np.pad(strength, ((0, 0), (1, 1), (1, 1)))
    height, width = strength.shape[1:]

    def neighbour(down: int, right: int) -> NDArray[np.int64]:
        return padded[:, 1 + down : 1 + down + height, 1 + right : 1 + right + width]

    flat, steep = np.abs(dy) < _TAN_22 * np.abs(dx), np.abs(dy) > np.abs(dx) / _TAN_22
    rising = (dx < 0) != (dy < 0)
    across = (strength > neighbour(0, -1)) & (strength >= neighbour(0, 1))
    along = (strength > neighbour(-1, 0)) & (strength >= neighbour(1, 0))
    falling_diagonal = (strength > neighbour(-1, -1)) & (strength > neighbour(1, 1))
    rising_diagonal = (strength > neighbour(-1, 1)) & (strength > neighbour(1, -1))
    return np.select([flat, steep, rising], [across, along, rising_diagonal], falling_diagonal)


def _chamfer_distance(free_NHW: NDArray[np.bool_]) -> Floats:
    """The distance to the nearest pixel that is not free, made of steps (1, 0), (1, 1) and (2, 1).

    The images are kept apart by a large distance between them, so an image without edges is far from every edge.
    """
    if free_NHW.all():
        return np.full(free_NHW.shape, np.inf)
    nearest = ndimage.distance_transform_edt(
        free_NHW, sampling=(1e6, 1, 1), return_distances=False, return_indices=True
    )
    image, row, column = (np.abs(a - b) for a, b in zip(nearest, np.indices(free_NHW.shape), strict=True))
    long, short = np.maximum(row, column), np.minimum(row, column)
    knights = np.minimum(short, long - short)
    distance = (long - short - knights) + _DIAGONAL * (short - knights) + _KNIGHT * knights
    return np.where(image > 0, np.inf, distance)


def _equalize(images_NHW: Images) -> Images:
    """OpenCV's histogram equalisation: the lowest level present becomes 0, the highest 255."""
    number = len(images_NHW)
    flat = images_NHW.reshape(number, -1)
    bins = flat + 256 * np.arange(number)[:, None]
    counts = np.bincount(bins.ravel(), minlength=256 * number).reshape(number, 256)
    lowest = flat.min(axis=1, keepdims=True)
    first = np.take_along_axis(counts, lowest.astype(np.int64), axis=1)
    total = flat.shape[1]
    table = np.round((counts.cumsum(axis=1) - first) * 255 / np.maximum(total - first, 1))
    table = np.where(first == total, lowest, table)
    return np.take_along_axis(table, flat.astype(np.int64), axis=1).astype(np.uint8).reshape(images_NHW.shape)
