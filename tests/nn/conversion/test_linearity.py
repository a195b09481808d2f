import pytest
import torch
from torch import nn

from counterpoint.nn.conversion.linearity import close, why_not_linear
from tests.nn.conversion import layers


@pytest.mark.parametrize(
    "layer",
    [
        nn.Linear(3, 4),
        nn.Conv1d(4, 6, 3, groups=2, padding_mode="circular", padding=1),
        nn.Conv3d(2, 3, (1, 2, 3), dilation=2, bias=False),
        nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2),
        layers.StandardisedConv2d(3, 4, 3),
        layers.PaddedConv2d(3, 4, 3),
        nn.utils.parametrizations.weight_norm(nn.Linear(3, 4)),
        nn.utils.parametrizations.spectral_norm(nn.Conv2d(3, 4, 3)),
    ],
    ids=lambda layer: type(layer).__name__,
)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_linear_layers_are_found_linear(layer: nn.Module, dtype: torch.dtype) -> None:
    assert why_not_linear(layer.to(dtype)) is None


@pytest.mark.parametrize(
    ("layer", "reason"),
    [
        (layers.CosineLinear(3, 4), "CosineLinear is not linear in its input"),
        (layers.ScaledBiasLinear(3, 4), "ScaledBiasLinear does more with its bias than to add it"),
        (layers.CentredLinear(3, 4), "CentredLinear mixes the rows of a batch"),
        (layers.NeedsBias(3, 4), "NeedsBias fails when it is tried without its bias (TypeError: "),
    ],
)
def test_others_are_not_and_say_why(layer: nn.Linear, reason: str) -> None:
    torch.manual_seed(0)
    nn.init.normal_(layer.bias)
    found = why_not_linear(layer)
    assert found is not None
    assert found.startswith(reason)


def test_the_trial_leaves_the_layer_alone() -> None:
    layer = layers.StandardisedConv2d(3, 4, 3).train()
    bias = layer.bias
    assert why_not_linear(layer) is None
    assert layer.training
    assert layer.bias is bias


def test_closeness_depends_on_the_dtype() -> None:
    one = torch.ones(3)
    assert close(one + 5e-5, one)
    assert not close(one + 5e-4, one)
    assert not close(one.double() + 5e-5, one.double())
    assert close(one.half() + 5e-3, one.half())
    assert not close(one[:2], one)
    nothing = torch.full((2,), float("nan"))
    assert close(nothing, nothing)
    assert not close(torch.zeros(2), nothing)
    assert not close(torch.tensor([1, 2]), torch.tensor([1, 3]))
