"""Images that tests share."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import ndimage


@pytest.fixture(scope="session")
def made_up() -> NDArray[np.uint8]:
    """Six smooth colour images with black and white in them."""
    noise = np.random.default_rng(0).normal(size=(6, 32, 32, 3))
    smooth = ndimage.gaussian_filter(noise, (0, 2, 2, 0), mode="wrap")
    return np.clip(128 + 600 * smooth, 0, 255).astype(np.uint8)
