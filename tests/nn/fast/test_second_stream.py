"""Gradients computed on a second stream, or, on a CPU, in their turn."""

from typing import Any

import pytest
import torch
from torch import Tensor

from counterpoint.nn.fast import second_stream
from counterpoint.nn.fast.second_stream import run_on_second_stream


class _Scale(torch.autograd.Function):
    """x·w with the gradient of w computed on the second stream."""

    @staticmethod
    def forward(ctx: Any, x_RC: Tensor, weight_C: Tensor) -> Tensor:
        ctx.save_for_backward(x_RC, weight_C)
        return x_RC * weight_C

    @staticmethod
    def backward(ctx: Any, g_RC: Tensor) -> tuple[Tensor, Tensor]:
        x_RC, weight_C = ctx.saved_tensors
        return g_RC * weight_C, run_on_second_stream(lambda: (g_RC * x_RC).sum(dim=0), g_RC, x_RC)


def test_on_a_cpu_the_work_is_done_at_once() -> None:
    done: list[int] = []
    assert run_on_second_stream(lambda: done.append(1) or "result", torch.zeros(1)) == "result"  # type: ignore[func-returns-value]
    assert done == [1]


def test_the_gradients_are_those_of_plain_autograd(device: torch.device) -> None:
    """With more layers than pieces of work may be under way."""
    generator = torch.Generator().manual_seed(0)
    x_RC = torch.randn(3000, 64, generator=generator).to(device)
    weights = [torch.randn(64, generator=generator).to(device).requires_grad_() for _ in range(6)]
    found_RC = plain_RC = x_RC
    for weight_C in weights:
        found_RC, plain_RC = _Scale.apply(found_RC, weight_C), plain_RC * weight_C
    assert torch.equal(found_RC, plain_RC)
    found_RC.sum().backward()
    for weight_C, exact_C in zip(weights, torch.autograd.grad(plain_RC.sum(), weights), strict=True):
        assert weight_C.grad is not None
        assert (weight_C.grad - exact_C).abs().max() <= 1e-5 * exact_C.abs().max()


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_nothing_is_held_once_the_backward_pass_is_over(device: torch.device) -> None:
    weight_C = torch.ones(8, device=device, requires_grad=True)
    x_RC = torch.ones(4, 8, device=device)
    _Scale.apply(_Scale.apply(x_RC, weight_C), torch.ones_like(weight_C).requires_grad_()).sum().backward()
    assert second_stream._second_stream(x_RC.device)._under_way == []
