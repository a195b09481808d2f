"""BatchNorm with what surrounds it, in as few passes over the activations as training allows.

Forward, one pass computes the statistics and one normalises. Backward, one pass computes sums and one the gradient. The
ReLU, the residual sum, stochastic depth and the members' factors are computed in the same passes. The factors are r of
the convolution before the BatchNorm and s of the convolution after it.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from counterpoint.nn.fast import norm_kernels as kernels
from counterpoint.nn.fast import residual_kernels
from counterpoint.nn.norm import PerMemberBatchNorm2d

# These sizes were the fastest on an H200 (docs/log.md, 2026-11-15). A program works on a tile of so many values.
_TILE, _WARPS = 2048, 4
# Passes that sum have only two programs per multiprocessor, each of which must keep many loads under way.
_SUMMING_TILE, _SUMMING_WARPS, _SUMMING_PROGRAMS = 4096, 8, 264
_WIDEST = 128  # the most channels of a tile
_SMALL_BLOCK = 16  # channels per program of the small kernels between the passes


@dataclass(frozen=True)
class _Pass:
    """How a pass over activations (N, H, W, C) of M members is cut into programs."""

    members: int
    rows: int  # per member
    channels: int
    block_rows: int
    block_channels: int
    steps: int  # tiles per program

    @staticmethod
    def over(activations_NHWC: Tensor, members: int, *, sums: bool) -> "_Pass":
        channels = activations_NHWC.shape[-1]
        rows = activations_NHWC.numel() // channels // members
        block_channels = min(triton.next_power_of_2(channels), _WIDEST)
        block_rows = (_SUMMING_TILE if sums else _TILE) // block_channels
        chunks = max(1, _SUMMING_PROGRAMS // (members * triton.cdiv(channels, block_channels)))
        steps = triton.cdiv(triton.cdiv(rows, block_rows), chunks) if sums else 1
        return _Pass(members, rows, channels, block_rows, block_channels, steps)

    @property
    def chunks(self) -> int:
        """The number of programs per member (and block of channels)."""
        return triton.cdiv(self.rows, self.steps * self.block_rows)

    @property
    def grid(self) -> tuple[int, int]:
        return self.members * self.chunks, triton.cdiv(self.channels, self.block_channels)

    @property
    def sizes(self) -> tuple[int, int]:
        return self.chunks, self.channels

    @property
    def summing_sizes(self) -> tuple[int, int, int]:
        return self.steps, self.chunks, self.channels

    @property
    def _blocks(self) -> dict[str, int]:
        return {"BLOCK_R": self.block_rows, "BLOCK_C": self.block_channels}

    def new_sums(self, number: int, like: Tensor) -> Tensor:
        return like.new_empty((number, self.members * self.chunks, self.channels), dtype=torch.float32)

    @property
    def blocks(self) -> dict[str, int]:
        return self._blocks | {"num_warps": _WARPS}

    def summing_blocks(self, *, tensors: int) -> dict[str, int]:
        """The blocks of a pass that sums and reads so many tensors.

        The tiles of several steps (stages) are loaded before the first one is needed. With more than three tensors a
        multiprocessor has no room for two programs of five stages each.
        """
        return self._blocks | {"num_warps": _SUMMING_WARPS, "STAGES": 5 if tensors <= 3 else 4}


@dataclass(frozen=True)
class Norm:
    """A BatchNorm layer, and the factors r (M, C) of the convolution before it, if that convolution leaves them out."""

    layer: nn.BatchNorm2d
    members: int
    r: Tensor | None = None

    @property
    def tensors(self) -> tuple[Tensor | None, Tensor, Tensor]:
        """What autograd must see."""
        return self.r, self.layer.weight, self.layer.bias

    @property
    def shared(self) -> bool:
        return not isinstance(self.layer, PerMemberBatchNorm2d)


@dataclass(frozen=True)
class Summed:
    """A convolution's output y (N, H, W, C), and Σy and Σy² per channel and program, as in `sums_of`."""

    values_NHWC: Tensor
    sums: Tensor


@dataclass(frozen=True)
class _Coefficients:
    """The coefficients of z = a·y + b and what the backward pass needs: all (M, C), but member_sums (2, M, C)."""

    a: Tensor
    b: Tensor
    mean: Tensor
    inverse: Tensor
    member_sums: Tensor

    def tensors(self) -> tuple[Tensor, ...]:
        return self.a, self.b, self.mean, self.inverse, self.member_sums


def sums_of(y_NHWC: Tensor, members: int) -> Tensor:
    """Σy and Σy² per channel and program, as (2, M·chunks, C)."""
    cut = _Pass.over(y_NHWC, members, sums=True)
    sums = cut.new_sums(2, y_NHWC)
    kernels.sums_kernel[cut.grid](y_NHWC, sums, cut.rows, *cut.summing_sizes, **cut.summing_blocks(tensors=1))
    return sums


def _small(sums: Tensor, norm: Norm) -> tuple[tuple[int], dict[str, int]]:
    """Grid and blocks of a kernel that adds up the programs' sums."""
    together = norm.shared and norm.r is None
    most = sums.shape[1] if together else sums.shape[1] // norm.members
    blocks = {"BLOCK_P": triton.next_power_of_2(most), "BLOCK_C": _SMALL_BLOCK, "num_warps": 8}
    return (triton.cdiv(sums.shape[2], _SMALL_BLOCK),), blocks


def _statistics(y_NHWC: Tensor, sums: Tensor, norm: Norm) -> _Coefficients:
    members, channels = norm.members, sums.shape[2]
    rows = y_NHWC.numel() // channels // members
    a, b, mean, inverse = (sums.new_empty(members, channels) for _ in range(4))
    member_sums = sums.new_empty(2, members, channels)
    layer, track = norm.layer, norm.layer.track_running_stats
    grid, blocks = _small(sums, norm)
    kernels.coefficients_kernel[grid](
        sums, norm.r, layer.weight, layer.bias, layer.running_mean, layer.running_var, layer.num_batches_tracked,
        a, b, mean, inverse, member_sums,
        rows, sums.shape[1] // members, channels, layer.eps, layer.momentum,
        MEMBERS=members, SHARED=norm.shared, HAS_R=norm.r is not None, TRACK=track, **blocks,
    )  # fmt: skip
    return _Coefficients(a, b, mean, inverse, member_sums)


@dataclass(frozen=True)
class _Gradients:
    """The coefficients q and t of dy = a·dz + q·y + t, and the gradients of the parameters."""

    q: Tensor
    t: Tensor
    r: Tensor | None
    weight: Tensor
    bias: Tensor
    s: Tensor | None


def _norm_gradients(
    cut: _Pass, sums: Tensor, norm: Norm, coefficients: _Coefficients, *, has_s: bool = False
) -> _Gradients:
    def like_member() -> Tensor:
        return sums.new_empty(norm.members, cut.channels)

    q, t = like_member(), like_member()
    grad_r = like_member() if norm.r is not None else None
    grad_s = like_member() if has_s else None
    grad_weight, grad_bias = (torch.empty_like(norm.layer.weight) for _ in range(2))
    grid, blocks = _small(sums, norm)
    kernels.gradient_coefficients_kernel[grid](
        sums, norm.r, norm.layer.weight, coefficients.a, coefficients.mean, coefficients.inverse,
        coefficients.member_sums, q, t, grad_r, grad_weight, grad_bias, grad_s,
        cut.rows, cut.chunks, cut.channels,
        MEMBERS=norm.members, SHARED=norm.shared, HAS_R=norm.r is not None, HAS_S=has_s, **blocks,
    )  # fmt: skip
    return _Gradients(q, t, grad_r, grad_weight, grad_bias, grad_s)


class _NormReLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, y_NHWC: Tensor, sums: Tensor, norm: Norm, s: Tensor | None, *_: Tensor | None) -> Tensor:
        coefficients = _statistics(y_NHWC, sums, norm)
        x_NHWC = torch.empty_like(y_NHWC)
        cut = _Pass.over(y_NHWC, norm.members, sums=False)
        kernels.apply_kernel[cut.grid](
            y_NHWC, coefficients.a, coefficients.b, s, x_NHWC, cut.rows, *cut.sizes, HAS_S=s is not None, **cut.blocks
        )
        ctx.norm = norm
        ctx.save_for_backward(y_NHWC, s, *coefficients.tensors())
        return x_NHWC

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_NHWC: Tensor) -> tuple[Tensor | None, ...]:
        y_NHWC, s, *saved = ctx.saved_tensors
        coefficients, norm, g_NHWC = _Coefficients(*saved), ctx.norm, g_NHWC.contiguous()
        a, b, has_s = coefficients.a, coefficients.b, s is not None
        cut = _Pass.over(y_NHWC, norm.members, sums=True)
        sums = cut.new_sums(3 if has_s else 2, y_NHWC)
        kernels.gradient_sums_kernel[cut.grid](
            g_NHWC, y_NHWC, a, b, s, sums, cut.rows, *cut.summing_sizes, HAS_S=has_s, **cut.summing_blocks(tensors=2)
        )
        gradients = _norm_gradients(cut, sums, norm, coefficients, has_s=has_s)
        dy_NHWC = torch.empty_like(y_NHWC)
        cut = _Pass.over(y_NHWC, norm.members, sums=False)
        kernels.gradient_apply_kernel[cut.grid](
            g_NHWC, y_NHWC, a, b, s, gradients.q, gradients.t, dy_NHWC, cut.rows, *cut.sizes, HAS_S=has_s, **cut.blocks
        )
        return dy_NHWC, None, None, gradients.s, gradients.r, gradients.weight, gradients.bias


def norm_relu(y: Summed, norm: Norm, s: Tensor | None = None) -> Tensor:
    """relu(BatchNorm(y·r))·s of channels-last activations, with the batch's statistics."""
    return _NormReLU.apply(y.values_NHWC, y.sums, norm, s, *norm.tensors)


class _ResidualReLU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        y_NHWC: Tensor,
        shortcut_NHWC: Tensor,
        sums: Tensor,
        shortcut_sums: Tensor | None,
        keep_N: Tensor | None,
        norm: Norm,
        shortcut_norm: Norm | None,
        *_: Tensor | None,
    ) -> Tensor:
        branch = _statistics(y_NHWC, sums, norm)
        shortcut = None
        if shortcut_norm and shortcut_sums is not None:
            shortcut = _statistics(shortcut_NHWC, shortcut_sums, shortcut_norm)
        out_NHWC = torch.empty_like(y_NHWC)
        cut = _Pass.over(y_NHWC, norm.members, sums=False)
        residual_kernels.residual_kernel[cut.grid](
            y_NHWC, branch.a, branch.b, shortcut_NHWC, shortcut and shortcut.a, shortcut and shortcut.b, keep_N,
            out_NHWC, cut.rows, _pixels(y_NHWC), *cut.sizes,
            NORMED=shortcut is not None, HAS_KEEP=keep_N is not None, **cut.blocks,
        )  # fmt: skip
        ctx.norms = norm, shortcut_norm
        saved_shortcut = (shortcut_NHWC, *shortcut.tensors()) if shortcut else ()
        ctx.save_for_backward(y_NHWC, out_NHWC, keep_N, *branch.tensors(), *saved_shortcut)
        return out_NHWC

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_NHWC: Tensor) -> tuple[Tensor | None, ...]:
        norm, shortcut_norm = ctx.norms
        y_NHWC, out_NHWC, keep_N, *saved = ctx.saved_tensors
        branch, g_NHWC = _Coefficients(*saved[:5]), g_NHWC.contiguous()
        shortcut_NHWC, shortcut = (saved[5], _Coefficients(*saved[6:])) if shortcut_norm else (None, None)
        flags = {"NORMED": shortcut is not None, "HAS_KEEP": keep_N is not None}

        cut = _Pass.over(y_NHWC, norm.members, sums=True)
        dz_NHWC, sums = torch.empty_like(y_NHWC), cut.new_sums(2, y_NHWC)
        shortcut_sums = cut.new_sums(2, y_NHWC) if shortcut else None
        residual_kernels.residual_gradient_sums_kernel[cut.grid](
            g_NHWC, out_NHWC, y_NHWC, shortcut_NHWC, keep_N, dz_NHWC, sums, shortcut_sums,
            cut.rows, _pixels(y_NHWC), *cut.summing_sizes, **flags, **cut.summing_blocks(tensors=4 if shortcut else 3),
        )  # fmt: skip
        of_branch, of_shortcut = _norm_gradients(cut, sums, norm, branch), None
        if shortcut and shortcut_sums is not None:
            of_shortcut = _norm_gradients(cut, shortcut_sums, shortcut_norm, shortcut)

        cut = _Pass.over(y_NHWC, norm.members, sums=False)
        dy_NHWC, d_shortcut_NHWC = torch.empty_like(y_NHWC), torch.empty_like(y_NHWC) if shortcut else dz_NHWC
        residual_kernels.residual_gradient_kernel[cut.grid](
            dz_NHWC, y_NHWC, branch.a, of_branch.q, of_branch.t,
            shortcut_NHWC, shortcut and shortcut.a, of_shortcut and of_shortcut.q, of_shortcut and of_shortcut.t,
            keep_N, dy_NHWC, d_shortcut_NHWC, cut.rows, _pixels(y_NHWC), *cut.sizes, **flags, **cut.blocks,
        )  # fmt: skip
        parameters = (of_branch.r, of_branch.weight, of_branch.bias)
        shortcut_parameters = (of_shortcut.r, of_shortcut.weight, of_shortcut.bias) if of_shortcut else ()
        return dy_NHWC, d_shortcut_NHWC, None, None, None, None, None, *parameters, *shortcut_parameters


def residual_relu(
    y: Summed, norm: Norm, shortcut: Summed | Tensor, shortcut_norm: Norm | None = None, keep_N: Tensor | None = None
) -> Tensor:
    """relu(keep·BatchNorm(y·r) + shortcut), with BatchNorm(shortcut·r) in place of shortcut if it has a norm."""
    shortcut_NHWC, shortcut_sums = (
        (shortcut, None) if isinstance(shortcut, Tensor) else (shortcut.values_NHWC, shortcut.sums)
    )
    shortcut_tensors = shortcut_norm.tensors if shortcut_norm else ()
    # The kernels read `keep_N` as a contiguous vector, but it may be a slice of a larger mask.
    keep_N = None if keep_N is None else keep_N.contiguous()
    return _ResidualReLU.apply(
        y.values_NHWC, shortcut_NHWC, y.sums, shortcut_sums, keep_N, norm, shortcut_norm,
        *norm.tensors, *shortcut_tensors,
    )  # fmt: skip


def _pixels(activations_NHWC: Tensor) -> int:
    return activations_NHWC.shape[1] * activations_NHWC.shape[2]
