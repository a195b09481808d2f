"""The layers against M separate layers with W ∘ r_i s_iᵀ, in float64, values and gradients."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear

CONVS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 3, "padding": 1},
    "pointwise": {"kernel_size": 1, "bias": False},
    "strided": {"kernel_size": 3, "stride": 2, "padding": 1},
    "dilated": {"kernel_size": 3, "dilation": 2},
    "grouped": {"kernel_size": 3, "padding": 1, "groups": 2},
    "depthwise": {"kernel_size": (1, 3), "padding": "same", "groups": 4},
    "reflected": {"kernel_size": 5, "padding": 2, "padding_mode": "reflect", "groups": 2, "stride": 2},
}


def outer_product_weight(layer: BatchEnsembleConv2d, member: int) -> Tensor:
    """W ∘ r_i s_iᵀ entry by entry."""
    weight = torch.zeros_like(layer.weight)
    out_a_group, in_a_group = layer.out_channels // layer.groups, layer.in_channels // layer.groups
    for o in range(layer.out_channels):
        for i in range(in_a_group):
            input_channel = (o // out_a_group) * in_a_group + i
            weight[o, i] = layer.weight[o, i] * layer.r[member, o] * layer.s[member, input_channel]
    return weight


def fill_bias(layer: BatchEnsembleConv2d | BatchEnsembleLinear) -> None:
    if layer.bias is not None:
        nn.init.normal_(layer.bias)


def assert_same_values_and_gradients(result: Tensor, expected: Tensor, inputs: list[Tensor]) -> None:
    probe = torch.randn_like(expected)
    gradients, expected_gradients = (torch.autograd.grad((y * probe).sum(), inputs) for y in (result, expected))
    torch.testing.assert_close(result, expected, rtol=1e-12, atol=1e-12)
    for ours, theirs in zip(gradients, expected_gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("options", CONVS.values(), ids=CONVS)
def test_convolution_equals_separate_layers(options: dict[str, Any], members: int) -> None:
    torch.manual_seed(0)
    layer = BatchEnsembleConv2d(4, 8, **options, num_members=members).double()
    fill_bias(layer)
    x = torch.randn(members * 2, 4, 9, 7, dtype=torch.float64, requires_grad=True)
    # Separate leaves, so that the twin's gradients come from the explicit weights alone.
    parameters = [p for p in (layer.weight, layer.r, layer.s, layer.bias) if p is not None]

    outputs = []
    for i in range(members):
        plain = nn.Conv2d(4, 8, **options).double()
        weights = {"weight": outer_product_weight(layer, i)} | ({} if layer.bias is None else {"bias": layer.bias[i]})
        outputs.append(torch.func.functional_call(plain, weights, x[2 * i : 2 * i + 2]))
    expected = torch.cat(outputs)
    assert_same_values_and_gradients(layer(x), expected, [x, *parameters])


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("between", [(), (5,)], ids=["matrix", "sequence"])
def test_linear_equals_separate_layers(between: tuple[int, ...], bias: bool) -> None:
    torch.manual_seed(0)
    layer = BatchEnsembleLinear(6, 4, num_members=3, bias=bias).double()
    fill_bias(layer)
    x = torch.randn(6, *between, 6, dtype=torch.float64, requires_grad=True)
    parameters = [p for p in (layer.weight, layer.r, layer.s, layer.bias) if p is not None]
    expected = torch.cat(
        [
            nn.functional.linear(
                x[2 * i : 2 * i + 2],
                layer.weight * torch.outer(layer.r[i], layer.s[i]),
                layer.bias[i] if layer.bias is not None else None,
            )
            for i in range(3)
        ]
    )
    assert_same_values_and_gradients(layer(x), expected, [x, *parameters])


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_member_weight_is_the_outer_product(groups: int) -> None:
    layer = BatchEnsembleConv2d(4, 8, 3, num_members=2, groups=groups)
    torch.testing.assert_close(layer.member_weight(1), outer_product_weight(layer, 1))
    linear = BatchEnsembleLinear(3, 5, num_members=2)
    torch.testing.assert_close(linear.member_weight(0), linear.weight * torch.outer(linear.r[0], linear.s[0]))


def test_factors_start_as_the_paper_says() -> None:
    generator = torch.Generator().manual_seed(0)
    layer = BatchEnsembleConv2d(2000, 3000, 1, num_members=4, generator=generator)
    for factor in (layer.r, layer.s):
        assert abs(factor.mean() - 1) < 0.02
        assert abs(factor.std() - 0.5) < 0.02
    signs = BatchEnsembleLinear(2000, 3, num_members=4, init="signs", generator=generator)
    assert set(signs.s.unique().tolist()) == {-1.0, 1.0}
    assert abs(signs.s.mean()) < 0.05


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (BatchEnsembleConv2d(3, 4, 1, num_members=4), torch.zeros(6, 3, 2, 2)),
        (BatchEnsembleLinear(3, 4, num_members=4), torch.zeros(6, 3)),
    ],
    ids=["conv", "linear"],
)
def test_a_batch_that_does_not_divide_raises(layer: nn.Module, x: Tensor) -> None:
    with pytest.raises(InputError, match="6 rows cannot be divided among 4 members"):
        layer(x)


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(InputError, match="num_members is 0"):
        BatchEnsembleLinear(1, 1, num_members=0)
    with pytest.raises(InputError, match="unknown init 'zeros'"):
        BatchEnsembleLinear(1, 1, num_members=2, init="zeros")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="member is 2; it must be a whole number from 0 to 1"):
        BatchEnsembleLinear(1, 1, num_members=2).member_weight(2)


def test_mixed_precision_keeps_the_activations_narrow() -> None:
    layer = BatchEnsembleConv2d(3, 4, 1, num_members=2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert layer(torch.randn(4, 3, 2, 2)).dtype == torch.bfloat16
