"""The real data sets, where COUNTERPOINT_DATA names a folder that has them."""

import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray


def real_path(*parts: str) -> Path:
    """The path in the data folder; a test that needs it is skipped where it is not there."""
    root = os.environ.get("COUNTERPOINT_DATA")
    if not root:
        pytest.skip("COUNTERPOINT_DATA is not set")
    path = Path(root, *parts)
    if not path.exists():
        pytest.skip(f"{path} is not there")
    return path


@pytest.fixture
def real_data() -> Path:
    """The data folder."""
    return real_path()


@pytest.fixture(scope="session")
def cifar() -> NDArray[np.uint8]:
    """CIFAR-10's test images 0 to 499: records of a label byte and 3,072 bytes, channel by channel."""
    records = np.fromfile(real_path("cifar-10-batches-bin", "test_batch.bin"), np.uint8, count=500 * 3073)
    return records.reshape(500, 3073)[:, 1:].reshape(500, 3, 32, 32).transpose(0, 2, 3, 1).copy()


@pytest.fixture(scope="session")
def photographs() -> Path:
    """The folder of the original frost photographs."""
    return real_path("frost")
