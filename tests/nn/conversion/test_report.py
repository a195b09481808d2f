import warnings

import pytest
import torch
from torch import nn

from counterpoint.nn import batch_ensemble
from tests.nn.conversion.layers import CosineLinear


def test_the_report_says_what_happened() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(16, 5), CosineLinear(5, 2))
    conversion = batch_ensemble(model, 2).conversion
    assert conversion is not None
    convolution, linear = 3 * 4 * 9 + 4, 16 * 5 + 5
    assert conversion.parameters == convolution + 8 + linear + 5 * 2 + 2
    assert conversion.parameters_converted == convolution + linear
    # r, s and one more bias for each of two members, in place of one bias
    assert conversion.parameters_added == 2 * (4 + 3 + 4) - 4 + 2 * (5 + 16 + 5) - 5
    assert conversion.layer_share == 2 / 3
    assert conversion.warning is None
    assert str(conversion).splitlines() == [
        "Sequential as an ensemble of 2 members; r and s start as N(1, 0.05²)",
        "  converted  1 Conv2d, 1 Linear: 2 of 3 weight layers",
        "             with 90.8% of the model's 217 parameters",
        "  added      65 parameters (30.0%)",
        "  shared     1 BatchNorm2d",
        "  left out   1 CosineLinear (4): CosineLinear is not linear in its input",
    ]


def test_batchnorm_of_each_member_is_not_called_shared() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.LayerNorm(16), nn.Linear(16, 5))
    conversion = batch_ensemble(model, 2, batchnorm="per-member").conversion
    assert str(conversion).splitlines()[-2:] == ["  per member 1 BatchNorm2d", "  shared     1 LayerNorm"]


def test_a_model_of_which_little_converts_gets_a_warning() -> None:
    model = nn.Sequential(*[CosineLinear(2, 2) for _ in range(4)], nn.Linear(2, 2))
    with pytest.warns(UserWarning, match="only 1 of 5 weight layers of Sequential were converted"):
        conversion = batch_ensemble(model, 2).conversion
    report = str(conversion)
    assert "left out   4 CosineLinear (0, 1, 2, …): CosineLinear is not linear" in report
    assert report.splitlines()[-1].startswith("  warning    only 1 of 5 weight layers")


def test_a_parameter_that_two_layers_share_counts_once() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensemble = batch_ensemble(nn.Sequential(first, second), 2, init="signs")
    assert ensemble.conversion is not None
    assert (ensemble.conversion.parameters, ensemble.conversion.parameters_converted) == (9, 9)
    assert ensemble.network[0].weight is ensemble.network[1].weight  # type: ignore[index]
    assert "random signs" in str(ensemble.conversion)


def test_parameters_of_a_module_are_counted_in_words() -> None:
    class WithTokens(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
            self.head = nn.Linear(2, 2)

    assert "  shared     2 parameters" in str(batch_ensemble(WithTokens(), 2).conversion).splitlines()
