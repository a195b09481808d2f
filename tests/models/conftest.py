"""Models of other libraries, where these are installed."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from counterpoint.models import Wanted, describe_model, make_network
from tests.other_models import declare_torchvision_operators

declare_torchvision_operators()

MakeModel = Callable[..., nn.Module]


@pytest.fixture
def make_model() -> MakeModel:
    """Makes the model of a name for 7 classes, from nothing but its name, options and images."""

    def make_model(
        name: str, *, channels: int = 3, size: int = 32, pretrained: bool = False, **options: Any
    ) -> nn.Module:
        wanted = Wanted(name, options, 7, channels, (size, size), pretrained)
        return make_network(wanted, describe_model(wanted), torch.Generator().manual_seed(0))

    return make_model
