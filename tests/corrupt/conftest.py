"""Real images to corrupt, where the data folder has them."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


def _data(*parts: str) -> Path:
    root = os.environ.get("COUNTERPOINT_DATA")
    if root is None:
        pytest.skip("COUNTERPOINT_DATA is not set")
    path = Path(root, *parts)
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture(scope="session")
def cifar() -> NDArray[np.uint8]:
    """CIFAR-10's test images 0 to 499."""
    records = np.fromfile(_data("cifar-10-batches-bin", "test_batch.bin"), np.uint8, count=500 * 3073)
    return records.reshape(500, 3073)[:, 1:].reshape(500, 3, 32, 32).transpose(0, 2, 3, 1).copy()


@pytest.fixture(scope="session")
def photographs() -> Path:
    """The folder of the original frost photographs."""
    return _data("frost")
