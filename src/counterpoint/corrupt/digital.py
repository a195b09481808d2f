"""Brightness, contrast and colour, elastic distortion, pixelation, JPEG."""

from collections.abc import Callable
from functools import lru_cache
from io import BytesIO

import numpy as np
from PIL import Image

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import Indices, blur, mirror_with_edge, mirror_without_edge, sample_bilinear
from counterpoint.corrupt.pixels import Floats, Images, Scale, as_channels, largest_channel, resized, to_bytes, to_unit


def brightness(images_NHWC: Images, _draws: Draws, _scale: Scale, *, added: float) -> Images:
    """Add to the HSV value and keep hue and saturation: every channel grows in proportion, and black becomes grey."""
    value_NHW1 = largest_channel(images_NHWC).astype(np.uint16)
    return _brightened(added).take(value_NHW1 << 8 | images_NHWC)


@lru_cache(maxsize=8)
def _brightened(added: float) -> Images:
    """For each value, the new bytes of all levels."""
    level = np.arange(256) / 255.0
    value = level[:, None]
    ratio = np.divide(level, value, out=np.ones((256, 256)), where=value > 0)
    return to_bytes(ratio * np.minimum(value + added, 1)).ravel()


def saturate(images_NHWC: Images, _draws: Draws, _scale: Scale, *, factor: float, added: float) -> Images:
    """Scale and raise the HSV saturation and keep hue and value. Grey has the hue of red, by HSV's convention.

    A grey image is taken as one with red = green = blue, and the luminance of the result is returned.
    """
    channels = images_NHWC.shape[3]
    x_NHWC = np.broadcast_to(to_unit(images_NHWC), (*images_NHWC.shape[:3], 3))
    value, lowest = to_unit(largest_channel(images_NHWC)), to_unit(~largest_channel(~images_NHWC))
    span = value - lowest
    grey = span == 0
    saturation = np.clip(span / np.where(value == 0, 1, value) * factor + added, 0, 1)
    depth_NHWC = (value - x_NHWC) / np.where(grey, 1, span)
    depth_NHWC[grey[..., 0]] = [0, 1, 1]
    return to_bytes(as_channels(value * (1 - saturation * depth_NHWC), channels))


def contrast(images_NHWC: Images, _draws: Draws, _scale: Scale, *, factor: float) -> Images:
    """Pull every channel towards its mean over the image. An integer sum is the same in any batch."""
    number, height, width, channels = images_NHWC.shape
    total_NC = images_NHWC.sum(axis=1, dtype=np.uint32).sum(axis=1, dtype=np.int64)
    mean_NC1 = total_NC[..., None] / (255.0 * height * width)
    table_NCL = to_bytes((np.arange(256) / 255.0 - mean_NC1) * factor + mean_NC1)
    first_N11C = 256 * np.arange(number * channels).reshape(number, 1, 1, channels)
    return table_NCL.take(first_N11C + images_NHWC)


def elastic_transform(
    images_NHWC: Images, draws: Draws, scale: Scale, *, alpha: float, sigma: float, jitter: float
) -> Images:
    """A random affine map, then a smooth random displacement."""
    farthest = jitter * scale.factor
    jitter_N32 = draws.uniform("jitter", 3, 2, low=-farthest, high=farthest)
    warped = _warp_affine(to_unit(images_NHWC), jitter_N32)
    if alpha == 0:
        return to_bytes(warped)
    noise_NHW2 = draws.uniform("displacement", *scale.reference_shape, 2, low=-1, high=1)
    smooth_NHW2 = blur(noise_NHW2, sigma, mode="reflect", truncate=3)
    down_NHW, right_NHW = (alpha * scale.factor * resized(smooth_NHW2[..., axis], scale) for axis in (0, 1))
    row, column = np.mgrid[: scale.height, : scale.width]
    return to_bytes(sample_bilinear(warped, row + down_NHW, column + right_NHW, mirror_with_edge))


def _warp_affine(x_NHWC: Floats, jitter_N32: Floats) -> Floats:
    """Carry three corners of a central square to their jittered places; points are (column, row)."""
    _, height, width, _ = x_NHWC.shape
    arm = min(height, width) // 3
    corner_32 = np.array([width // 2, height // 2]) + arm * np.array([[1, 1], [1, -1], [-1, -1]])
    target_N33 = np.concatenate([corner_32 + jitter_N32, np.ones((len(x_NHWC), 3, 1))], axis=2)
    back_N321 = np.linalg.solve(target_N33, corner_32.astype(np.float64))[..., None, None]
    row, column = np.mgrid[:height, :width]
    source_column, source_row = (
        back_N321[:, 0, axis] * column + back_N321[:, 1, axis] * row + back_N321[:, 2, axis] for axis in (0, 1)
    )
    return sample_bilinear(x_NHWC, source_row, source_column, mirror_without_edge)


def pixelate(images_NHWC: Images, _draws: Draws, _scale: Scale, *, fraction: float) -> Images:
    """Pillow's BOX filter down and up again."""
    _, height, width, _ = images_NHWC.shape
    rows, columns = int(height * fraction), int(width * fraction)
    source_H, source_W = _box_sources(rows, height), _box_sources(columns, width)

    def coarse(image: Image.Image) -> Images:
        small = np.asarray(image.resize((columns, rows), Image.Resampling.BOX))
        return small.take(source_W, axis=1).take(source_H, axis=0)

    return _each_image(images_NHWC, coarse)


@lru_cache(maxsize=32)
def _box_sources(small: int, large: int) -> Indices:
    """The pixel that BOX repeats at each place of a larger image, found by enlarging the pixels' numbers with it."""
    numbers = Image.fromarray(np.arange(small, dtype=np.float32)[None])
    return np.asarray(numbers.resize((large, 1), Image.Resampling.BOX))[0].astype(np.int64)


def jpeg_compression(images_NHWC: Images, _draws: Draws, _scale: Scale, *, quality: int) -> Images:
    def compressed(image: Image.Image) -> Images:
        file = BytesIO()
        image.save(file, "JPEG", quality=quality)
        return np.asarray(Image.open(file, formats=("JPEG",)))

    return _each_image(images_NHWC, compressed)


def _each_image(images_NHWC: Images, function: Callable[[Image.Image], Images]) -> Images:
    """Pillow works image by image; a grey image goes through without its channel axis."""
    images = images_NHWC[..., 0] if images_NHWC.shape[3] == 1 else images_NHWC
    done = np.empty(images.shape, np.uint8)
    for place, image in zip(done, images, strict=True):
        place[:] = function(Image.fromarray(image))
    return done.reshape(images_NHWC.shape)
