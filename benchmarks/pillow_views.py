"""Views as Pillow and NumPy make them, image by image: what other benchmarks compare with."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from counterpoint.policy import MemberPolicy

AFFINE, BILINEAR = Image.Transform.AFFINE, Image.Resampling.BILINEAR


def member_views(image: Image.Image, policy: MemberPolicy, rng: np.random.Generator) -> NDArray[np.uint8]:
    """Each member's view, (M, H, W, C): a resized crop and flip that all share, then AugMix of its severity.

    The policy must have a crop_scale and AugMix with Bernoulli mixing.
    """
    assert policy.crop_scale is not None
    assert policy.augmix is not None
    cropped = image.crop(draw_box(image.width, image.height, policy.crop_scale, rng)).resize(image.size, BILINEAR)
    if rng.uniform() < 0.5:
        cropped = cropped.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    views = [_view(cropped, severity, policy.augmix.p, rng) for severity in policy.augmix.severity]
    return np.stack(views)


def _view(image: Image.Image, severity: float, p: float, rng: np.random.Generator) -> NDArray[np.uint8]:
    if rng.uniform() >= p:
        return np.asarray(image)
    return (pillow_augmix(image, severity, rng) * np.float32(255) + np.float32(0.5)).astype(np.uint8)


def draw_box(
    width: int, height: int, scale: tuple[float, float], rng: np.random.Generator
) -> tuple[int, int, int, int]:
    """Left, upper, right and lower edge, as torchvision's RandomResizedCrop draws them for squares."""
    for _ in range(10):
        area, ratio = width * height * rng.uniform(*scale), math.exp(rng.uniform(-1, 1) * math.log(4 / 3))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            left, upper = int(rng.integers(width - w + 1)), int(rng.integers(height - h + 1))
            return left, upper, left + w, upper + h
    return 0, 0, width, height


def pillow_augmix(original: Image.Image, severity: float, rng: np.random.Generator) -> NDArray[np.float32]:
    """AugMix of one image with width 3, depth 1 to 3 and m = 1."""

    def share(most: float) -> float:
        return float(rng.uniform(0.1, severity)) * most / 10

    def sign() -> int:
        return 1 if rng.uniform() > 0.5 else -1

    def transform(image: Image.Image, matrix: tuple[float, ...]) -> Image.Image:
        return image.transform(image.size, AFFINE, matrix, BILINEAR)

    operations: list[Callable[[Image.Image], Image.Image]] = [
        ImageOps.autocontrast,
        ImageOps.equalize,
        lambda image: ImageOps.posterize(image, 4 - int(share(4))),
        lambda image: image.rotate(sign() * int(share(30)), BILINEAR),
        lambda image: ImageOps.solarize(image, 256 - int(share(256))),
        lambda image: transform(image, (1, sign() * share(0.3), 0, 0, 1, 0)),
        lambda image: transform(image, (1, 0, 0, sign() * share(0.3), 1, 0)),
        lambda image: transform(image, (1, 0, sign() * int(share(image.width / 3)), 0, 1, 0)),
        lambda image: transform(image, (1, 0, 0, 0, 1, sign() * int(share(image.height / 3)))),
    ]
    mixed = np.zeros_like(original, np.float32)
    for weight in rng.dirichlet([1, 1, 1]):
        image = original
        for _ in range(rng.integers(1, 4)):
            image = operations[rng.integers(len(operations))](image)
        mixed += np.float32(weight / 255) * np.asarray(image, np.float32)
    return mixed
