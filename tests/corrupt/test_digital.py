"""Each corruption against a slow one made of Pillow's, SciPy's and scikit-image's functions."""

from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from scipy import ndimage
from skimage.color import hsv2rgb, rgb2hsv
from skimage.filters import gaussian

from counterpoint.corrupt import corrupt
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.pixels import Images
from tests.corrupt.images import truncated, worst


@pytest.mark.parametrize(("severity", "added"), list(enumerate([0.05, 0.1, 0.15, 0.2, 0.3], start=1)))
def test_brightness(severity: int, added: float, cifar: Images) -> None:
    hsv = rgb2hsv(cifar / 255)
    hsv[..., 2] = np.clip(hsv[..., 2] + added, 0, 1)
    assert worst(corrupt(cifar, "brightness", severity), truncated(hsv2rgb(hsv))) <= 1


@pytest.mark.parametrize(
    ("severity", "factor", "added"), [(1, 0.3, 0), (2, 0.1, 0), (3, 1.5, 0), (4, 2, 0.1), (5, 2.5, 0.2)]
)
def test_saturate(severity: int, factor: float, added: float, cifar: Images) -> None:
    images = cifar.copy()
    images[:, :2] = [[0, 0, 0], [90, 90, 90]] * 16  # black and grey, which have no hue
    hsv = rgb2hsv(images / 255)
    hsv[..., 1] = np.clip(hsv[..., 1] * factor + added, 0, 1)
    assert worst(corrupt(images, "saturate", severity), truncated(hsv2rgb(hsv))) <= 1


@pytest.mark.parametrize(("severity", "factor"), list(enumerate([0.75, 0.5, 0.4, 0.3, 0.15], start=1)))
def test_contrast(severity: int, factor: float, cifar: Images) -> None:
    mean = (cifar / 255).mean(axis=(1, 2), keepdims=True)
    assert worst(corrupt(cifar, "contrast", severity), truncated((cifar / 255 - mean) * factor + mean)) <= 1


@pytest.mark.parametrize(("severity", "side"), list(enumerate([30, 28, 27, 24, 20], start=1)))
def test_pixelate(severity: int, side: int, cifar: Images) -> None:
    box = Image.Resampling.BOX
    slow = [Image.fromarray(image).resize((side, side), box).resize((32, 32), box) for image in cifar]
    assert np.array_equal(corrupt(cifar, "pixelate", severity), np.stack([np.asarray(image) for image in slow]))


def test_pixelate_enlarges_as_pillow_does_at_any_size() -> None:
    """Where a pixel ends in the middle of another one, rounding decides."""
    box = Image.Resampling.BOX
    generator = np.random.default_rng(0)
    for side in range(8, 65):
        column = generator.integers(0, 256, (1, side, 16, 1), dtype=np.uint8)
        small = Image.fromarray(column[0, ..., 0]).resize((int(16 * 0.6), int(side * 0.6)), box)
        expected = np.asarray(small.resize((16, side), box))
        assert np.array_equal(corrupt(column, "pixelate", 1, constants="imagenet-c")[0, ..., 0], expected)


@pytest.mark.parametrize(("severity", "quality"), list(enumerate([80, 65, 58, 50, 40], start=1)))
def test_jpeg_compression(severity: int, quality: int, cifar: Images) -> None:
    def through_a_file(image: Images) -> Images:
        file = BytesIO()
        Image.fromarray(image).save(file, "JPEG", quality=quality)
        return np.asarray(Image.open(BytesIO(file.getvalue())))

    assert np.array_equal(corrupt(cifar, "jpeg_compression", severity), np.stack([through_a_file(i) for i in cifar]))


@pytest.mark.parametrize(
    ("severity", "alpha", "sigma", "jitter"),
    [(1, 0, 0, 2.56), (2, 1.6, 6.4, 2.24), (3, 2.56, 1.92, 1.92), (4, 3.2, 1.28, 1.6), (5, 3.2, 0.96, 0.96)],
)
def test_elastic_transform(severity: int, alpha: float, sigma: float, jitter: float, made_up: Images) -> None:
    draws = Draws(0, "elastic_transform", severity, 0, len(made_up))
    corner = np.array([[26.0, 26], [26, 6], [6, 6]])
    moved = corner + draws.uniform("jitter", 3, 2, low=-jitter, high=jitter)
    raw = draws.uniform("displacement", 32, 32, 2, low=-1, high=1)
    row, column = np.mgrid[:32, :32]
    for image, fast in enumerate(corrupt(made_up, "elastic_transform", severity)):
        # Forward: column and row of a moved corner are linear in those of the corner.
        forward = np.linalg.solve(np.column_stack([corner, np.ones(3)]), moved[image])
        backward = np.linalg.inv(np.column_stack([forward, [0, 0, 1]]))
        source = np.stack([column, row, np.ones_like(row)], axis=-1) @ backward
        shift = np.stack([gaussian(raw[image, ..., i], sigma, mode="reflect", truncate=3) * alpha for i in (0, 1)])
        for channel in range(3):
            x = made_up[image, ..., channel] / 255
            warped = ndimage.map_coordinates(x, [source[..., 1], source[..., 0]], order=1, mode="mirror")
            bent = ndimage.map_coordinates(warped, [row + shift[0], column + shift[1]], order=1, mode="reflect")
            assert worst(fast[..., channel], truncated(bent)) <= 1
