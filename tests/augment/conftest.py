import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor

from tests.interpreted import mend_interpreter

mend_interpreter()

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]


@pytest.fixture(params=DEVICES)
def device(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def cifar_images(cifar: NDArray[np.uint8]) -> Tensor:
    """CIFAR-10's test images 0 to 499, channels first."""
    return torch.from_numpy(cifar.transpose(0, 3, 1, 2).copy())
