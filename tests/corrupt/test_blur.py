"""Each blur against a slow and simple one."""

import math

import numpy as np
import pytest
from scipy import ndimage
from skimage.filters import gaussian

from counterpoint.corrupt import SEVERITIES, corrupt
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.pixels import Floats, Images
from tests.corrupt.images import truncated, worst

# Centre, edge and corner of the original's 3×3 kernels.
DEFOCUS_KERNELS = [
    (0.844973, 0.037126, 0.001631),
    (0.619347, 0.083820, 0.011344),
    (0.445213, 0.111015, 0.027682),
    (0.2, 0.2, 0.0),
    (1 / 9, 1 / 9, 1 / 9),
]


@pytest.mark.parametrize("severity", SEVERITIES)
def test_defocus_blur(severity: int, cifar: Images) -> None:
    centre, edge, corner = DEFOCUS_KERNELS[severity - 1]
    weights = [[corner, edge, corner], [edge, centre, edge], [corner, edge, corner]]
    padded = np.pad(cifar / 255, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="reflect")
    slow = sum(weights[i][j] * padded[:, i : i + 32, j : j + 32] for i in range(3) for j in range(3))
    assert worst(corrupt(cifar, "defocus_blur", severity), truncated(np.asarray(slow))) <= 1


@pytest.mark.parametrize(("side", "severity"), [(8, 4), (8, 5), (20, 5), (28, 4), (31, 4), (70, 1)])
def test_defocus_blur_of_a_small_image_reaches_the_next_pixels(side: int, severity: int) -> None:
    """The disk would be smaller than a pixel: that of 28 pixels scales to 0.875, that of 70 to 0.94."""
    image, centre = np.zeros((1, side, side, 1), np.uint8), side // 2
    image[0, centre, centre] = 250
    blurred = corrupt(image, "defocus_blur", severity)[0, :, :, 0]
    assert 40 <= blurred[centre, centre] <= 60
    assert blurred[centre - 1, centre] == blurred[centre, centre + 1] >= 40
    assert blurred[centre, centre + 3] == 0


@pytest.mark.parametrize(("severity", "sigma"), list(enumerate([0.4, 0.6, 0.7, 0.8, 1.0], start=1)))
def test_gaussian_blur(severity: int, sigma: float, cifar: Images) -> None:
    slow = [gaussian(image / 255, sigma=sigma, mode="nearest", truncate=4, channel_axis=-1) for image in cifar]
    assert worst(corrupt(cifar, "gaussian_blur", severity), truncated(np.stack(slow))) <= 1


def clipped_zoom(x_NHWC: Floats, factor: float) -> Floats:
    crop = math.ceil(32 / factor)
    first = (32 - crop) // 2
    centre = x_NHWC[:, first : first + crop, first : first + crop]
    zoomed = ndimage.zoom(centre, (1, factor, factor, 1), order=1)
    trim = (zoomed.shape[1] - 32) // 2
    return np.asarray(zoomed[:, trim : trim + 32, trim : trim + 32])


@pytest.fixture(scope="module")
def zooms(cifar: Images) -> dict[float, Floats]:
    """By each factor of the highest severity, among which are those of the others."""
    x_NHWC = (cifar / 255).astype(np.float32)
    return {factor: clipped_zoom(x_NHWC, factor) for factor in np.arange(1, 1.26, 0.01).tolist()}


@pytest.mark.parametrize(
    ("severity", "end", "number"), [(1, 1.06, 7), (2, 1.11, 12), (3, 1.16, 16), (4, 1.21, 21), (5, 1.26, 26)]
)
def test_zoom_blur(severity: int, end: float, number: int, cifar: Images, zooms: dict[float, Floats]) -> None:
    factors = np.arange(1, end, 0.01).tolist()
    assert len(factors) == number
    slow = ((cifar / 255).astype(np.float32) + np.sum([zooms[factor] for factor in factors], axis=0)) / (number + 1)
    assert worst(corrupt(cifar, "zoom_blur", severity), truncated(slow)) <= 1


@pytest.mark.parametrize(
    ("severity", "sigma", "iterations"), [(1, 0.05, 1), (2, 0.25, 1), (3, 0.4, 1), (4, 0.25, 2), (5, 0.4, 2)]
)
def test_glass_blur(severity: int, sigma: float, iterations: int, made_up: Images) -> None:
    """Pixel by pixel from the lower right, each copying what its neighbour still shows of the image before."""
    draws = Draws(0, "glass_blur", severity, 0, len(made_up))
    slow = truncated(np.stack([gaussian(image / 255, sigma=sigma, channel_axis=-1) for image in made_up]))
    for iteration in range(iterations):
        offset = draws.integers(f"shift {iteration}", 2, 30, 30, low=-1, high=1)
        for image in range(len(made_up)):
            for row in range(31, 1, -1):
                for column in range(31, 1, -1):
                    down, right = offset[image, :, row - 2, column - 2]
                    slow[image, row, column] = slow[image, row + down, column + right]
    slow = truncated(np.stack([gaussian(image / 255, sigma=sigma, channel_axis=-1) for image in slow]))
    assert worst(corrupt(made_up, "glass_blur", severity), slow) <= 1


def test_motion_blur_draws_angles_within_45_degrees() -> None:
    """A point is smeared to the left (the kernel looks right), and never more up or down than sideways."""
    point = np.zeros((200, 32, 32, 1), np.uint8)
    point[:, 16, 16] = 255
    smeared = corrupt(point, "motion_blur", 5)[..., 0].astype(float)
    row, column = (np.tensordot(smeared, grid, 2) / smeared.sum(axis=(1, 2)) - 16 for grid in np.mgrid[:32, :32])
    degrees = np.degrees(np.arctan2(-row, -column))
    assert degrees.min() < -35
    assert degrees.max() > 35
    assert np.abs(degrees).max() < 50
