"""How two arrays of images are compared."""

import numpy as np

from counterpoint.corrupt.pixels import Floats, Images

DETERMINISTIC = (
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
)
"""The corruptions that draw nothing."""


def truncated(x: Floats) -> Images:
    return (np.clip(x, 0, 1) * 255).astype(np.uint8)


def worst(a: Images, b: Images) -> int:
    return int(np.abs(a.astype(int) - b.astype(int)).max())


def distance(a: Images, b: Images) -> float:
    return float(np.sqrt(np.mean((a.astype(float) - b) ** 2)))
