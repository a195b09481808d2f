"""Filters over a batch that several corruptions share: Gaussian and motion blur, zoom, bilinear sampling."""

import math
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from scipy import fft, ndimage

from counterpoint.corrupt.pixels import Floats, Images

Indices = NDArray[np.int64]

# From here on a transform is quicker: pixels of a Gaussian to one side, and products per channel of a kernel.
_LONG_REACH = 32
_LONG_WORK = 1 << 20


def blur(x_NHWC: Floats, sigma: float, *, mode: str = "nearest", truncate: float = 4.0) -> Floats:
    """A separable Gaussian over rows and columns; `mode` is SciPy's name for the border. x may be overwritten."""
    if mode == "reflect" and sigma * truncate > _LONG_REACH:
        return _blur_by_cosines(x_NHWC, sigma, math.floor(truncate * sigma + 0.5))
    ndimage.gaussian_filter(x_NHWC, (0, sigma, sigma, 0), output=x_NHWC, mode=mode, truncate=truncate)
    return x_NHWC


def _blur_by_cosines(x_NHWC: Floats, sigma: float, radius: int) -> Floats:
    """The same blur for any radius, by a cosine transform: with a mirrored border it only scales each cosine wave."""
    offset = np.arange(1, radius + 1)
    weight = np.exp(-(offset**2) / (2 * sigma**2))
    spectrum_NHWC = fft.dctn(x_NHWC, axes=(1, 2))
    for axis in (1, 2):
        frequency = np.pi * np.arange(x_NHWC.shape[axis]) / x_NHWC.shape[axis]
        height = (1 + 2 * np.cos(np.outer(frequency, offset)) @ weight) / (1 + 2 * weight.sum())
        spectrum_NHWC *= height.reshape([-1 if a == axis else 1 for a in range(4)])
    blurred: Floats = fft.idctn(spectrum_NHWC, axes=(1, 2))
    return blurred


def correlate_symmetric(x_NHWC: Floats, kernel: Floats) -> Floats:
    """Correlate rows and columns with a kernel that is symmetric about its centre; mirrored, the edge not repeated."""
    _, height, width, _ = x_NHWC.shape
    if kernel.size * height * width < _LONG_WORK:
        correlated: Floats = ndimage.correlate(x_NHWC, kernel[None, :, :, None], mode="mirror")
        return correlated
    reach = len(kernel) // 2
    x_NCHW = np.pad(x_NHWC.transpose(0, 3, 1, 2), ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="reflect")
    size = [fft.next_fast_len(side, real=True) for side in x_NCHW.shape[2:]]
    product: Floats = fft.irfft2(fft.rfft2(x_NCHW, size) * fft.rfft2(kernel, size), size)
    # What wraps around falls into the first 2 · reach rows and columns.
    return product[..., 2 * reach : 2 * reach + height, 2 * reach : 2 * reach + width].transpose(0, 2, 3, 1)


def blur_along(images_NHWC: Images, degrees_N: Floats, radius: float, sigma: float) -> Images:
    """ImageMagick's motion blur: a one-sided Gaussian along a line, in whole pixels, with the edges repeated.

    ImageMagick computes in 16 bits and rounds. The result is then floored to 8 bits.
    """
    height, width = images_NHWC.shape[1:3]
    tap_T = np.arange(2 * math.ceil(radius) + 1)
    weight_T = np.exp(-(tap_T**2) / (2 * sigma**2))
    weight_T = 257 * (weight_T / weight_T.sum())
    reach = len(tap_T) - 1
    right_NT = reach + _steps(tap_T, np.cos(np.deg2rad(degrees_N)))
    down_NT = reach + _steps(tap_T, np.sin(np.deg2rad(degrees_N)))
    padded = np.pad(images_NHWC, ((0, 0), (reach, reach), (reach, reach), (0, 0)), mode="edge")
    shifted_NRRHWC = sliding_window_view(padded, (height, width), axis=(1, 2)).transpose(0, 1, 2, 4, 5, 3)
    image_N = np.arange(len(images_NHWC))
    total_NHWC, weighted_NHWC = np.zeros(images_NHWC.shape), np.empty(images_NHWC.shape)
    for tap, weight in enumerate(weight_T):
        np.multiply(shifted_NRRHWC[image_N, down_NT[:, tap], right_NT[:, tap]], weight, out=weighted_NHWC)
        total_NHWC += weighted_NHWC
    sixteen_bits = (total_NHWC + 0.5).astype(np.int32)
    return (sixteen_bits // 257).astype(np.uint8)


def _steps(tap_T: Indices, slope_N: Floats) -> Indices:
    return np.ceil(tap_T * slope_N[:, None] - 0.5).astype(np.int64)


def zoom(x_NHWC: Floats, factor: float) -> Floats:
    """The centre, enlarged `factor` times to the same size."""
    return _zoom_axis(_zoom_axis(x_NHWC, 1, factor), 2, factor)


def _zoom_axis(x: Floats, axis: int, factor: float) -> Floats:
    """Crop ceil(length / factor), interpolate linearly between the corners to round(crop · factor), trim to length."""
    length = x.shape[axis]
    crop = math.ceil(length / factor)
    size = round(crop * factor)
    position = ((size - length) // 2 + np.arange(length)) * ((crop - 1) / (size - 1))
    lower = np.minimum(position.astype(np.int64), crop - 2)
    fraction = (position - lower).astype(x.dtype).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    first = (length - crop) // 2
    below, above = x.take(first + lower, axis), x.take(first + lower + 1, axis)
    return below + fraction * (above - below)


def mirror_without_edge(index: Indices, length: int) -> Indices:
    """Fold any index into 0 … length − 1: … 2 1 | 0 1 2 … ; the edge is not repeated."""
    return length - 1 - np.abs(length - 1 - index % (2 * length - 2))


def mirror_with_edge(index: Indices, length: int) -> Indices:
    """Fold any index into 0 … length − 1: … 1 0 | 0 1 2 … ; the edge is repeated."""
    folded = index % (2 * length)
    return np.minimum(folded, 2 * length - 1 - folded)


def sample_bilinear(
    x_NHWC: Floats, row_NHW: Floats, column_NHW: Floats, fold: Callable[[Indices, int], Indices]
) -> Floats:
    """The image at fractional positions; `fold` says what lies beyond its border."""
    number, height, width, channels = x_NHWC.shape
    plane_CP = x_NHWC.transpose(3, 0, 1, 2).reshape(channels, -1)  # channel by channel, which is quicker
    top, left = (np.floor(p).astype(np.int64) for p in (row_NHW, column_NHW))
    down, right = row_NHW - top, column_NHW - left
    first_N11 = (np.arange(number) * height * width)[:, None, None]
    rows = [first_N11 + width * fold(top + step, height) for step in (0, 1)]
    columns = [fold(left + step, width) for step in (0, 1)]
    above, below = (
        (1 - right) * plane_CP.take(row + columns[0], 1) + right * plane_CP.take(row + columns[1], 1) for row in rows
    )
    return ((1 - down) * above + down * below).transpose(1, 2, 3, 0)
