"""Filters beside slow ones that say the same in a plainer way."""

import math

import numpy as np
import pytest
from scipy import ndimage

from counterpoint.corrupt.filters import blur, blur_along, correlate_symmetric, zoom
from counterpoint.corrupt.pixels import Images


@pytest.mark.parametrize("factor", [1.0, 1.25, 1.75, 2.25])
def test_zoom(factor: float, made_up: Images) -> None:
    crop = math.ceil(32 / factor)
    first = (32 - crop) // 2
    centre = made_up[:, first : first + crop, first : first + crop] / 255
    slow = ndimage.zoom(centre, (1, factor, factor, 1), order=1)
    trim = (slow.shape[1] - 32) // 2
    assert np.allclose(zoom(made_up / 255, factor), slow[:, trim : trim + 32, trim : trim + 32], atol=1e-12)


@pytest.mark.parametrize("degrees", [-135.0, -90.0, -44.9, -7.0, 0.0, 13.3, 45.0])
def test_blur_along(degrees: float, made_up: Images) -> None:
    taps = np.arange(2 * 6 + 1)
    weights = np.exp(-(taps**2) / (2 * 1.5**2)) / np.exp(-(taps**2) / (2 * 1.5**2)).sum()
    cosine, sine = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    slow = np.zeros((32, 32, 3), np.uint8)
    for row in range(32):
        for column in range(32):
            total = np.zeros(3)
            for tap, weight in enumerate(weights):
                source_row = min(max(row + math.ceil(tap * sine - 0.5), 0), 31)
                source_column = min(max(column + math.ceil(tap * cosine - 0.5), 0), 31)
                total += weight * 257.0 * made_up[1, source_row, source_column]
            slow[row, column] = np.floor(total + 0.5) // 257
    # The second of two images: each goes its own way.
    fast = blur_along(made_up[:2], np.array([30.0, degrees]), radius=6, sigma=1.5)[1]
    assert np.array_equal(fast, slow)


@pytest.mark.parametrize("sigma", [11.0, 60.0])
def test_a_long_blur_between_mirrors(sigma: float) -> None:
    """By cosine waves; the longer of the two reaches beyond the mirrors' images of the other border."""
    x_NHWC = np.random.default_rng(0).uniform(size=(2, 40, 56, 3))
    slow = ndimage.gaussian_filter(x_NHWC, (0, sigma, sigma, 0), mode="reflect", truncate=3)
    assert np.allclose(blur(x_NHWC, sigma, mode="reflect", truncate=3), slow, rtol=0, atol=1e-13)


def test_a_large_kernel() -> None:
    """By Fourier transforms, from a certain size on."""
    x_NHWC = np.random.default_rng(0).uniform(size=(2, 100, 90, 3))
    quarter = np.random.default_rng(1).uniform(size=(8, 8))
    kernel = np.pad(quarter, ((0, 7), (0, 7)), mode="reflect") / 225
    slow = ndimage.correlate(x_NHWC, kernel[None, :, :, None], mode="mirror")
    assert np.allclose(correlate_symmetric(x_NHWC, kernel), slow, rtol=0, atol=1e-13)
