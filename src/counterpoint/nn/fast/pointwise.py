"""1×1 convolutions as one matrix product for each member, with r and s folded into its weight.

The gradients of r and s then come from the gradients of the folded weights, not from passes over the activations.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from counterpoint.nn.batch_ensemble import BatchEnsembleConv2d
from counterpoint.nn.fast import product_kernels as kernels
from counterpoint.nn.fast.norm import Summed, sums_of
from counterpoint.nn.fast.second_stream import run_on_second_stream

_BLOCK_O, _BLOCK_I = 32, 64
# These sizes were the fastest on an H200 (docs/log.md, 2026-11-15), which has 132 multiprocessors.
_PRODUCTS = 132  # matrix products of 128 × 128 values that a weight's gradient is cut into
_OUTPUTS = 128  # per program of `product_kernel`, which works on _BLOCK_R rows at a time
_BLOCK_R, _PROGRAMS, _STAGES, _WARPS = 64, 264, 3, 4


@dataclass(frozen=True)
class Weights:
    """A 1×1 convolution's shared weight (O, I, 1, 1) and, for a BatchEnsemble, r (M, O) and s (M, I)."""

    weight: Tensor
    r: Tensor | None
    s: Tensor | None

    @staticmethod
    def of(conv: nn.Conv2d) -> "Weights":
        if isinstance(conv, BatchEnsembleConv2d):
            return Weights(conv.weight, conv.r, conv.s)
        return Weights(conv.weight, None, None)

    @property
    def tensors(self) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """What autograd must see."""
        return self.weight, self.r, self.s

    def fold(self, dtype: torch.dtype) -> Tensor:
        """W ∘ r_m s_mᵀ, (M, O, I)."""
        outs, ins = self.weight.shape[:2]
        if self.r is None or self.s is None:
            return self.weight.view(1, outs, ins).to(dtype)
        folded = self.weight.new_empty((len(self.r), outs, ins), dtype=dtype)
        grid = (triton.cdiv(outs, _BLOCK_O), triton.cdiv(ins, _BLOCK_I), len(self.r))
        kernels.fold_kernel[grid](self.weight, self.r, self.s, folded, outs, ins, BLOCK_O=_BLOCK_O, BLOCK_I=_BLOCK_I)
        return folded

    def gradients(self, partial_MPOI: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None]:
        """The gradients of weight, r and s from P parts of the folded weights' gradients."""
        members, parts, outs, ins = partial_MPOI.shape
        if self.r is None or self.s is None:
            return partial_MPOI.sum(dim=(0, 1), dtype=torch.float32).view_as(self.weight), None, None
        grid = triton.cdiv(outs, _BLOCK_O), triton.cdiv(ins, _BLOCK_I)
        grad_weight = torch.empty_like(self.weight)
        grad_r = self.r.new_empty(grid[1], members, outs)
        grad_s = self.s.new_empty(grid[0], members, ins)
        kernels.unfold_kernel[grid](
            partial_MPOI, *self.tensors, grad_weight, grad_r, grad_s, parts, outs, ins,
            MEMBERS=members, BLOCK_O=_BLOCK_O, BLOCK_I=_BLOCK_I,
        )  # fmt: skip
        return grad_weight, grad_r.sum(dim=0), grad_s.sum(dim=0)


def _multiply(x_NHWC: Tensor, folded_MOI: Tensor) -> tuple[Tensor, Tensor]:
    """x times the transposed weight of its member, and the sums that BatchNorm needs."""
    members, outs, ins = folded_MOI.shape
    if _fits_on_chip(ins, outs):
        return _multiply_and_sum(x_NHWC, folded_MOI)
    y_MRO = torch.bmm(x_NHWC.reshape(members, -1, ins), folded_MOI.transpose(1, 2))
    y_NHWC = y_MRO.view(*x_NHWC.shape[:-1], outs)
    return y_NHWC, sums_of(y_NHWC, members)


def _fits_on_chip(ins: int, outs: int) -> bool:
    """Whether `_multiply_and_sum` was faster on an H200 than cuBLAS and a pass for the sums.

    That holds for 64 inputs, and for 256 inputs with 128 outputs.
    """
    return outs % _OUTPUTS == 0 and (ins == 64 or (ins == 256 and outs == 128))


def _multiply_and_sum(x_NHWC: Tensor, folded_MOI: Tensor) -> tuple[Tensor, Tensor]:
    """`_multiply` in one pass over x, for inputs so few that their weights stay on the chip."""
    members, outs, ins = folded_MOI.shape
    rows = x_NHWC.numel() // ins // members
    tiles, programs = triton.cdiv(rows, _BLOCK_R), members * outs // _OUTPUTS
    steps = triton.cdiv(tiles, max(1, _PROGRAMS // programs))
    chunks = triton.cdiv(tiles, steps)
    y_NHWC = x_NHWC.new_empty(*x_NHWC.shape[:-1], outs)
    sums = x_NHWC.new_empty((2, members * chunks, outs), dtype=torch.float32)
    kernels.product_kernel[outs // _OUTPUTS, members * chunks](
        x_NHWC, folded_MOI, y_NHWC, sums, rows, steps, chunks,
        INS=ins, OUTS=outs, STAGES=_STAGES, BLOCK_R=_BLOCK_R, BLOCK_O=_OUTPUTS, num_warps=_WARPS,
    )  # fmt: skip
    return y_NHWC, sums


def _input_gradient(g_NHWC: Tensor, folded_MOI: Tensor, add_NHWC: Tensor | None = None) -> Tensor:
    members, outs, ins = folded_MOI.shape
    g_MRO = g_NHWC.reshape(members, -1, outs)
    if add_NHWC is None:
        return torch.bmm(g_MRO, folded_MOI).view(*g_NHWC.shape[:-1], ins)
    # This may be done in place, because nobody else holds the gradient `add_NHWC`.
    add_NHWC.view(members, -1, ins).baddbmm_(g_MRO, folded_MOI)
    return add_NHWC


def _weight_gradients(weights: Weights, members: int, g_NHWC: Tensor, x_NHWC: Tensor) -> tuple[Tensor | None, ...]:
    outs, ins = g_NHWC.shape[-1], x_NHWC.shape[-1]
    rows = x_NHWC.numel() // ins // members
    # The weight is small and the sum over the rows is long. Cut into parts, the sum is enough products to fill the GPU.
    parts = _divisor_near(rows, _PRODUCTS // (members * triton.cdiv(outs, 128) * triton.cdiv(ins, 128)))

    def work() -> tuple[Tensor | None, ...]:
        g_POR = g_NHWC.reshape(members * parts, -1, outs).transpose(1, 2)
        partial_POI = torch.bmm(g_POR, x_NHWC.reshape(members * parts, -1, ins))
        return weights.gradients(partial_POI.view(members, parts, outs, ins))

    return run_on_second_stream(work, g_NHWC, x_NHWC)


def _divisor_near(rows: int, wanted: int) -> int:
    """The largest divisor of `rows` that is no more than `wanted`, or 1."""
    return next((parts for parts in range(wanted, 1, -1) if rows % parts == 0), 1)


class _Pointwise(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NHWC: Tensor, weights: Weights, *_: Tensor | None) -> tuple[Tensor, Tensor]:
        folded_MOI = weights.fold(x_NHWC.dtype)
        ctx.weights = weights
        ctx.save_for_backward(x_NHWC, folded_MOI)
        y_NHWC, sums = _multiply(x_NHWC, folded_MOI)
        ctx.mark_non_differentiable(sums)
        return y_NHWC, sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_NHWC: Tensor, _: None) -> tuple[Tensor | None, ...]:
        x_NHWC, folded_MOI = ctx.saved_tensors
        dx_NHWC = _input_gradient(g_NHWC, folded_MOI)
        if not ctx.needs_input_grad[2]:
            return dx_NHWC, None, None, None, None
        return dx_NHWC, None, *_weight_gradients(ctx.weights, len(folded_MOI), g_NHWC, x_NHWC)


def pointwise(x_NHWC: Tensor, conv: nn.Conv2d) -> Summed:
    """A 1×1 convolution of channels-last activations."""
    weights = Weights.of(conv)
    return Summed(*_Pointwise.apply(x_NHWC, weights, *weights.tensors))


class _BlockInput(torch.autograd.Function):
    """The first convolution of a block and the convolution of its shortcut, if it has one.

    Both have the same input. They are one function, so that the second gradient of this input is added to the first
    where it is computed. Without a convolution in the shortcut the input itself is returned in its place.
    """

    @staticmethod
    def forward(
        ctx: Any, x_NHWC: Tensor, stride: int, weights: Weights, shortcut: Weights | None, *_: Tensor | None
    ) -> tuple[Tensor, ...]:
        folded_MOI = weights.fold(x_NHWC.dtype)
        y_NHWC, sums = _multiply(x_NHWC, folded_MOI)
        ctx.weights, ctx.shortcut, ctx.stride = weights, shortcut, stride
        if shortcut is None:
            ctx.save_for_backward(x_NHWC, folded_MOI)
            ctx.mark_non_differentiable(sums)
            return y_NHWC, sums, x_NHWC
        seen_NHWC = x_NHWC[:, ::stride, ::stride].contiguous()
        folded_shortcut_MOI = shortcut.fold(x_NHWC.dtype)
        ctx.save_for_backward(x_NHWC, folded_MOI, seen_NHWC, folded_shortcut_MOI)
        shortcut_NHWC, shortcut_sums = _multiply(seen_NHWC, folded_shortcut_MOI)
        ctx.mark_non_differentiable(sums, shortcut_sums)
        return y_NHWC, sums, shortcut_NHWC, shortcut_sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_NHWC: Tensor, _: None, g_shortcut_NHWC: Tensor, *__: None) -> tuple[Tensor | None, ...]:
        x_NHWC, folded_MOI, *of_shortcut = ctx.saved_tensors
        if of_shortcut:
            dx_NHWC = _with_shortcut_gradient(
                _input_gradient(g_NHWC, folded_MOI), g_shortcut_NHWC, of_shortcut[1], ctx.stride
            )
        else:
            dx_NHWC = _input_gradient(g_NHWC, folded_MOI, g_shortcut_NHWC)
        if not ctx.needs_input_grad[4]:
            return dx_NHWC, *(None,) * (9 if of_shortcut else 6)
        gradients = _weight_gradients(ctx.weights, len(folded_MOI), g_NHWC, x_NHWC)
        if of_shortcut:
            gradients += _weight_gradients(ctx.shortcut, len(folded_MOI), g_shortcut_NHWC, of_shortcut[0])
        return dx_NHWC, None, None, None, *gradients


def _with_shortcut_gradient(dx_NHWC: Tensor, g_NHWC: Tensor, folded_MOI: Tensor, stride: int) -> Tensor:
    """`dx` with the shortcut's part added, which touches every stride-th pixel only."""
    if stride == 1:
        return _input_gradient(g_NHWC, folded_MOI, dx_NHWC)
    dx_NHWC[:, ::stride, ::stride] += _input_gradient(g_NHWC, folded_MOI)
    return dx_NHWC


def block_input(x_NHWC: Tensor, conv: nn.Conv2d, shortcut: nn.Conv2d | None) -> tuple[Summed, Summed | Tensor]:
    """conv(x), and the shortcut: shortcut(x) or x itself."""
    weights = Weights.of(conv)
    if shortcut is None:
        y_NHWC, sums, same_NHWC = _BlockInput.apply(x_NHWC, 1, weights, None, *weights.tensors)
        return Summed(y_NHWC, sums), same_NHWC
    shortcut_weights = Weights.of(shortcut)
    y_NHWC, sums, shortcut_NHWC, shortcut_sums = _BlockInput.apply(
        x_NHWC, shortcut.stride[0], weights, shortcut_weights, *weights.tensors, *shortcut_weights.tensors
    )
    return Summed(y_NHWC, sums), Summed(shortcut_NHWC, shortcut_sums)
