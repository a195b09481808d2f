"""The grouped 3×3 convolution and our input gradient against PyTorch's in float64."""

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn.fast import grouped as fast

Draw = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
CheckAll = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], None]

# Inputs and outputs per group, and the number of groups.
GROUPS = [(16, 16, 3), (32, 16, 1), (16, 64, 2), (64, 64, 1), (128, 128, 1)]


def plain_convolution(x_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    y_NCHW = nn.functional.conv2d(x_NHWC.permute(0, 3, 1, 2), weight, None, stride, padding=1, groups=groups)
    return y_NCHW.permute(0, 2, 3, 1)


def random_weight(draw: Draw, ins: int, outs: int, groups: int) -> Tensor:
    weight = draw(outs * groups, ins, 3, 3) / (3 * ins**0.5)
    return weight.to(memory_format=torch.channels_last)


@pytest.mark.parametrize(("ins", "outs", "groups"), GROUPS)
@pytest.mark.parametrize("stride", [1, 2])
def test_input_gradient(draw: Draw, check: Check, ins: int, outs: int, groups: int, stride: int) -> None:
    weight = random_weight(draw, ins, outs, groups)
    x_NHWC = draw(3, 6, 10, ins * groups).double().requires_grad_()
    y_NHWC = plain_convolution(x_NHWC, weight.double(), stride, groups)
    g_NHWC = draw(*y_NHWC.shape)
    (exact_NHWC,) = torch.autograd.grad(y_NHWC, x_NHWC, g_NHWC.double())
    check(fast.input_gradient(g_NHWC, weight, stride, groups), exact_NHWC)


# Width of a group, stride, height, and whether the input's gradient comes from our kernel: with stride 2 or 64 channels
# per group, if the group's width is a power of two from 16 on and the stride divides the size.
CHOICES = [
    (16, 1, 4, False),
    (16, 2, 4, True),
    (16, 2, 5, False),
    (12, 2, 4, False),
    (8, 2, 4, False),
    (32, 2, 4, True),
    (64, 1, 5, True),
]


@pytest.mark.parametrize(("width", "stride", "height", "by_our_kernel"), CHOICES)
def test_autograd_takes_the_faster_gradient(
    monkeypatch: pytest.MonkeyPatch,
    draw: Draw,
    check_all: CheckAll,
    width: int,
    stride: int,
    height: int,
    by_our_kernel: bool,
) -> None:
    calls, kernel = [], fast.input_gradient

    def counted(g_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
        calls.append(stride)
        return kernel(g_NHWC, weight, stride, groups)

    monkeypatch.setattr(fast, "input_gradient", counted)
    x_NHWC = draw(3, height, 6, 2 * width).requires_grad_()
    conv = nn.Conv2d(2 * width, 2 * width, 3, stride, 1, groups=2, bias=False)
    conv = conv.to(x_NHWC.device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    conv.load_state_dict({"weight": random_weight(draw, width, width, 2)})
    twin, exact_x_NHWC = deepcopy(conv).double(), x_NHWC.detach().double().requires_grad_()
    exact_NHWC = plain_convolution(exact_x_NHWC, twin.weight, stride, 2)
    check_all([fast.grouped(x_NHWC, conv)], [x_NHWC, conv.weight], [exact_NHWC], [exact_x_NHWC, twin.weight])
    assert len(calls) == by_our_kernel


def test_a_weight_that_wants_no_gradient_gets_none(draw: Draw) -> None:
    x_NHWC = draw(2, 4, 4, 32).requires_grad_()
    conv = nn.Conv2d(32, 32, 3, padding=1, groups=2, bias=False).to(x_NHWC.device).requires_grad_(False)
    fast.grouped(x_NHWC, conv).sum().backward()
    assert x_NHWC.grad is not None
    assert conv.weight.grad is None
