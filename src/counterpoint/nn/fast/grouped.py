"""Grouped 3×3 convolutions by cuDNN. Where cuDNN's input gradient is slow, our kernel computes it."""

import itertools
from typing import Any

import torch
import triton
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from counterpoint.nn.fast import product_kernels as kernels
from counterpoint.nn.fast.second_stream import run_on_second_stream

_BLOCK_R = 128
_STAGES = 3


def input_gradient(g_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    """The gradient of the convolution's input by our kernel. The stride is 1 or 2, and must divide the input's size.

    The weight is (outputs, inputs per group, 3, 3) in channels-last order.
    """
    (images, height, width, outs), ins = g_NHWC.shape, weight.shape[1] * groups
    dx_NHWC = g_NHWC.new_empty(images, height * stride, width * stride, ins)
    rows = images * height * width
    for top, left in itertools.product(range(stride), repeat=2):
        # Per direction a pixel is seen by all three taps; with stride 2, by the middle one or by the two outer ones.
        downs, rights = (3, 3) if stride == 1 else (1 + top, 1 + left)
        kernels.grouped_gradient_kernel[triton.cdiv(rows, _BLOCK_R), groups](
            g_NHWC, weight, dx_NHWC, height, width, rows,
            OUTS=outs // groups, INS=ins // groups, GROUPS=groups,
            STRIDE=stride, TOP=top, LEFT=left, DOWNS=downs, RIGHTS=rights, BLOCK_R=_BLOCK_R,
            num_warps=8 if max(outs, ins) // groups > 64 else 4, num_stages=_STAGES,
        )  # fmt: skip
    return dx_NHWC


def _is_slow_in_cudnn(weight: Tensor, stride: int, groups: int) -> bool:
    """Whether cuDNN took two to four times as long as our kernel for this input gradient on an H200.

    That holds for all convolutions with stride 2, and for groups of 64 channels with stride 1.
    """
    return stride == 2 or weight.shape[1] == len(weight) // groups == 64


def _kernel_fits(x_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> bool:
    """Whether our kernel can compute this input gradient.

    The stride must divide the size. The groups' widths must be powers of two that fill a matrix unit. And 32 bits must
    be enough to count the values.
    """
    widths = (weight.shape[1], len(weight) // groups)
    divides = stride <= 2 and x_NHWC.shape[1] % stride == 0 and x_NHWC.shape[2] % stride == 0
    fills = all(16 <= width <= 128 and width & (width - 1) == 0 for width in widths)
    return divides and fills and x_NHWC[..., 0].numel() * groups * max(widths) < 2**31


class _Grouped(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
        weight = weight.to(x_NHWC.dtype, memory_format=torch.channels_last)
        ctx.save_for_backward(x_NHWC, weight)
        ctx.stride, ctx.groups = stride, groups
        y_NCHW = nn.functional.conv2d(x_NHWC.permute(0, 3, 1, 2), weight, None, stride, 1, 1, groups)
        return y_NCHW.permute(0, 2, 3, 1).contiguous()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, g_NHWC: Tensor) -> tuple[Tensor | None, ...]:
        (x_NHWC, weight), g_NHWC = ctx.saved_tensors, g_NHWC.contiguous()
        options = weight, ctx.stride, ctx.groups
        if _is_slow_in_cudnn(*options) and _kernel_fits(x_NHWC, *options):
            dx_NHWC = input_gradient(g_NHWC, *options)
        else:
            dx_NHWC = _by_cudnn(g_NHWC, x_NHWC, *options, wanted=0)
        if not ctx.needs_input_grad[1]:
            return dx_NHWC, None, None, None
        grad_weight = run_on_second_stream(
            lambda: _by_cudnn(g_NHWC, x_NHWC, *options, wanted=1).float(), g_NHWC, x_NHWC
        )
        return dx_NHWC, grad_weight, None, None


def _by_cudnn(g_NHWC: Tensor, x_NHWC: Tensor, weight: Tensor, stride: int, groups: int, *, wanted: int) -> Tensor:
    """The gradient of the input (`wanted` is 0), channels-last, or of the weight (`wanted` is 1)."""
    gradient = torch.ops.aten.convolution_backward(
        g_NHWC.permute(0, 3, 1, 2), x_NHWC.permute(0, 3, 1, 2), weight, None, [stride] * 2, [1, 1], [1, 1],
        False, [0, 0], groups, [wanted == 0, wanted == 1, False],
    )[wanted]  # fmt: skip
    return gradient.permute(0, 2, 3, 1).contiguous() if wanted == 0 else gradient


def grouped(x_NHWC: Tensor, conv: nn.Conv2d) -> Tensor:
    """A grouped 3×3 convolution with the shared weight W alone.

    The factors s are in x already, and the BatchNorm that follows applies r.
    """
    return _Grouped.apply(x_NHWC, conv.weight, conv.stride[0], conv.groups)
