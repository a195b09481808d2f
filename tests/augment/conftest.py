import os
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def cifar_images() -> Tensor:
    """500 real test images of CIFAR-10: records of a label byte and 3,072 bytes, channel by channel."""
    folder = os.environ.get("COUNTERPOINT_DATA")
    path = Path(folder or "", "cifar-10-batches-bin", "test_batch.bin")
    if not folder or not path.exists():
        pytest.skip("real CIFAR-10 is not there (COUNTERPOINT_DATA)")
    records = np.fromfile(path, dtype=np.uint8, count=500 * 3073).reshape(500, 3073)
    return torch.from_numpy(records[:, 1:].reshape(500, 3, 32, 32).copy())
