"""Brightness, contrast and colour, elastic distortion, pixelation, JPEG."""

from collections.abc import Callable
from io import BytesIO

import numpy as np
from PIL import Image

from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.filters import blur, mirror_with_edge, mirror_without_edge, sample_bilinear
from counterpoint.corrupt.pixels import Floats, Images, Scale, as_channels, resized, to_bytes, to_unit


def brightness(images_NHWC: Images, _draws: Draws, _scale: Scale, *, added: float) -> Images:
    """Add to the HSV value and keep hue and saturation: every channel grows in proportion, and black becomes grey."""
    x_NHWC = to_unit(images_NHWC)
    value = x_NHWC.max(-1, keepdims=True)
    brighter = np.minimum(value + added, 1)
    return to_bytes(np.divide(x_NHWC, value, out=np.ones_like(x_NHWC), where=value > 0) * brighter)


def saturate(images_NHWC: Images, _draws: Draws, _scale: Scale, *, factor: float, added: float) -> Images:
    """Scale and raise the HSV saturation and keep hue and value. Grey has the hue of red, by HSV's convention.

    A grey image is taken as one with red = green = blue, and the luminance of the result is returned.
    """
    channels = images_NHWC.shape[3]
    x_NHWC = np.broadcast_to(to_unit(images_NHWC), (*images_NHWC.shape[:3], 3))
    value = x_NHWC.max(-1, keepdims=True)
    span = value - x_NHWC.min(-1, keepdims=True)
    saturation = np.divide(span, value, out=np.zeros_like(value), where=value > 0)
    red_hue = np.broadcast_to([0.0, 1.0, 1.0], x_NHWC.shape).copy()
    depth_NHWC = np.divide(value - x_NHWC, span, out=red_hue, where=span > 0)
    saturation = np.clip(saturation * factor + added, 0, 1)
    return to_bytes(as_channels(value * (1 - saturation * depth_NHWC), channels))


def contrast(images_NHWC: Images, _draws: Draws, _scale: Scale, *, factor: float) -> Images:
    """Pull every channel towards its mean over the image. An integer sum is the same in any batch."""
    _, height, width, _ = images_NHWC.shape
    total = images_NHWC.sum(axis=(1, 2), keepdims=True, dtype=np.int64)
    mean_N11C = total / (255.0 * height * width)
    return to_bytes((to_unit(images_NHWC) - mean_N11C) * factor + mean_N11C)


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
    def coarse(image: Image.Image) -> Image.Image:
        width, height = image.size
        small = image.resize((int(width * fraction), int(height * fraction)), Image.Resampling.BOX)
        return small.resize((width, height), Image.Resampling.BOX)

    return _each_image(images_NHWC, coarse)


def jpeg_compression(images_NHWC: Images, _draws: Draws, _scale: Scale, *, quality: int) -> Images:
    def compressed(image: Image.Image) -> Image.Image:
        file = BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _each_image(images_NHWC, compressed)


def _each_image(images_NHWC: Images, function: Callable[[Image.Image], Image.Image]) -> Images:
    """Pillow works image by image; a grey image goes through without its channel axis."""
    images = images_NHWC[..., 0] if images_NHWC.shape[3] == 1 else images_NHWC
    done = [np.asarray(function(Image.fromarray(image))) for image in images]
    return np.stack(done).reshape(images_NHWC.shape)
