"""Every kind of converted layer against plain layers with each member's weight, in float64, values and gradients."""

import copy
import pickle
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.batch_ensemble import FoldableLayer, WrappedLayer, give_members, keep_one_member
from counterpoint.nn.members import MemberLayer
from tests.nn.conversion import layers

LAYERS: dict[str, tuple[nn.Module, tuple[int, ...]]] = {
    "Conv1d": (nn.Conv1d(4, 6, 3, padding=1, groups=2), (9,)),
    "Conv2d": (nn.Conv2d(4, 6, 3, dilation=2, stride=2), (9, 8)),
    "Conv3d": (nn.Conv3d(4, 6, 2, groups=2, bias=False), (3, 4, 5)),
    "ConvTranspose1d": (nn.ConvTranspose1d(4, 6, 3, stride=2, groups=2), (5,)),
    "ConvTranspose2d": (nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1, bias=False), (4, 5)),
    "ConvTranspose3d": (nn.ConvTranspose3d(4, 6, (1, 2, 3), dilation=2, groups=2), (2, 3, 4)),
    "Linear": (nn.Linear(4, 6), ()),
    "standardised": (layers.StandardisedConv2d(4, 6, 3), (5, 5)),
    "padded": (layers.PaddedConv2d(4, 6, 3), (5, 5)),
    "weight norm": (nn.utils.parametrizations.weight_norm(nn.Conv1d(4, 6, 3)), (5,)),
    "spectral norm by a hook": (nn.utils.spectral_norm(nn.Linear(4, 6)), ()),
}
MEMBERS, BATCH = 3, 2


def converted(name: str) -> tuple[nn.Module, Any, Tensor]:
    """A plain layer, the same with members, and an input (M·B, …)."""
    torch.manual_seed(0)
    plain = copy.deepcopy(LAYERS[name][0]).double().eval()
    layer = copy.deepcopy(plain)
    give_members(layer, MEMBERS, "normal", 0.5, torch.Generator().manual_seed(1))
    assert isinstance(layer, MemberLayer)
    bias = layer.bias_of_members()
    if bias is not None:
        nn.init.normal_(bias)
    return plain, layer, torch.randn(MEMBERS * BATCH, 4, *LAYERS[name][1], dtype=torch.float64)


def shaped(values: Tensor, like: Tensor, linear: bool) -> Tensor:
    return values if linear else values.view(1, -1, *(1,) * (like.dim() - 2))


@pytest.mark.parametrize("name", LAYERS)
def test_a_member_is_the_plain_layer_between_its_factors(name: str) -> None:
    plain, layer, x = converted(name)
    plain.register_parameter("bias", None)
    linear = isinstance(plain, nn.Linear)
    outputs = []
    for i in range(MEMBERS):
        mine = x[BATCH * i : BATCH * (i + 1)]
        output = plain(mine * shaped(layer.s[i], mine, linear))
        outputs.append(output * shaped(layer.r[i], output, linear))
        if (bias := layer.bias_of_members()) is not None:
            outputs[-1] = outputs[-1] + shaped(bias[i], output, linear)
    expected = torch.cat(outputs)
    torch.testing.assert_close(layer(x), expected, rtol=1e-12, atol=1e-12)
    factors = [layer.r, layer.s]
    probe = torch.randn_like(expected)
    for found, wanted in zip(
        *(torch.autograd.grad((y * probe).sum(), factors) for y in (layer(x), expected)), strict=True
    ):
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", LAYERS)
def test_one_member_alone_computes_the_same(name: str) -> None:
    _, layer, x = converted(name)
    with torch.no_grad():
        expected = layer(x).unflatten(0, (MEMBERS, BATCH))
        for i in range(MEMBERS):
            alone = copy.deepcopy(layer)
            keep_one_member(alone, i)
            torch.testing.assert_close(alone(x[BATCH * i : BATCH * (i + 1)]), expected[i], rtol=1e-12, atol=1e-12)
            assert isinstance(layer, WrappedLayer) or type(alone) is type(LAYERS[name][0])


@pytest.mark.parametrize("name", LAYERS)
def test_copies_and_state_dicts_carry_a_layer(name: str) -> None:
    plain, layer, x = converted(name)
    other = copy.deepcopy(plain)
    give_members(other, MEMBERS, "normal", 0.5, None)
    other.load_state_dict(layer.state_dict())
    with torch.no_grad():
        for copied in (copy.deepcopy(layer), other):
            assert torch.equal(copied(x), layer(x))
    assert [key for key in layer.state_dict() if key in ("r", "s")] == ["r", "s"]


@pytest.mark.parametrize("name", ["Conv3d", "ConvTranspose1d", "standardised"])
def test_layers_can_be_pickled(name: str) -> None:
    _, layer, x = converted(name)
    restored = pickle.loads(pickle.dumps(layer))
    assert torch.equal(restored(x), layer(x))
    assert isinstance(restored, MemberLayer)


def test_the_size_of_a_transposed_convolution_can_be_asked_for() -> None:
    plain, layer, x = converted("ConvTranspose1d")
    assert layer(x, output_size=[12]).shape[-1] == plain(x, output_size=[12]).shape[-1] == 12
    assert layer(x).shape[-1] == 11


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("Conv2d", (6, 1, 9, 9), r"a Conv2d got 1 channels \(shape \(6, 1, 9, 9\)\); it takes 4"),
        ("Conv2d", (4, 9, 9), r"got an input of shape \(4, 9, 9\); it needs 4 axes, \(rows, channels, …\)"),
        ("Linear", (6, 3), r"a Linear got 3 features \(shape \(6, 3\)\); it takes 4"),
        ("Linear", (4,), "it needs two axes or more"),
        ("standardised", (6, 1, 5, 5), "a StandardisedConv2d got 1 channels"),
    ],
)
def test_an_input_that_would_broadcast_is_refused(name: str, shape: tuple[int, ...], message: str) -> None:
    _, layer, _ = converted(name)
    with pytest.raises(InputError, match=message):
        layer(torch.zeros(shape, dtype=torch.float64))


def test_pixels_that_are_not_normalised_are_refused() -> None:
    _, layer, _ = converted("Conv2d")
    with pytest.raises(InputError, match=r"a Conv2d got an input of torch\.uint8; it takes real numbers\. Normalise"):
        layer(torch.zeros(6, 4, 9, 9, dtype=torch.uint8))


def test_rows_may_be_on_the_second_axis_of_a_linear_layer() -> None:
    _, layer, _ = converted("Linear")
    assert isinstance(layer, FoldableLayer)
    sequence = torch.randn(5, MEMBERS * BATCH, 4, dtype=torch.float64)
    first = layer(sequence.transpose(0, 1)).transpose(0, 1)
    layer.batch_axis = 1
    torch.testing.assert_close(layer(sequence), first)
    assert layer(sequence[0]).shape == (MEMBERS * BATCH, 6)
