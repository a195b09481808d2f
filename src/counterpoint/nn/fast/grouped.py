"""Grouped 3×3 convolutions: cuDNN's, and a kernel of our own where cuDNN's input gradient is slow."""

from typing import Any

import torch
import triton
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from counterpoint.nn.fast import kernels
from counterpoint.nn.fast.beside import run_beside

_BLOCK_R = 128
_STAGES = 3


def _launch(
    x_NHWC: Tensor, weight: Tensor, y_NHWC: Tensor, groups: int, *, backward: bool, stride: int, top: int, left: int
) -> None:
    step = stride if backward else 1
    # Of three taps an input pixel is seen by all, or with stride 2 by the middle one or the two others.
    downs, rights = (3, 3) if step == 1 else (1 + top, 1 + left)
    width_of_group = max(x_NHWC.shape[3], y_NHWC.shape[3]) // groups
    height, width = y_NHWC.shape[1] // step, y_NHWC.shape[2] // step
    rows = len(y_NHWC) * height * width
    kernels.grouped_kernel[triton.cdiv(rows, _BLOCK_R), groups](
        x_NHWC, weight, y_NHWC, x_NHWC.shape[1], x_NHWC.shape[2], height, width, rows,
        X_GROUP=x_NHWC.shape[3] // groups, Y_GROUP=y_NHWC.shape[3] // groups, GROUPS=groups,
        BACKWARD=backward, STRIDE=stride, TOP=top, LEFT=left,
        DOWNS=downs, RIGHTS=rights, BLOCK_R=_BLOCK_R, num_warps=8 if width_of_group > 64 else 4, num_stages=_STAGES,
    )  # fmt: skip


def convolve(x_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    """The convolution by our kernel; the weight is (outputs, inputs of a group, 3, 3) in channels-last order."""
    height, width = (triton.cdiv(size, stride) for size in x_NHWC.shape[1:3])
    y_NHWC = x_NHWC.new_empty(len(x_NHWC), height, width, len(weight))
    _launch(x_NHWC, weight, y_NHWC, groups, backward=False, stride=stride, top=0, left=0)
    return y_NHWC


def input_gradient(g_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> Tensor:
    """The gradient of the convolution's input by our kernel, for sizes that the stride divides."""
    images, height, width, _ = g_NHWC.shape
    dx_NHWC = g_NHWC.new_empty(images, height * stride, width * stride, weight.shape[1] * groups)
    for top in range(stride):
        for left in range(stride):
            _launch(g_NHWC, weight, dx_NHWC, groups, backward=True, stride=stride, top=top, left=left)
    return dx_NHWC


def _is_slow_in_cudnn(weight: Tensor, stride: int, groups: int) -> bool:
    """The input gradients that took cuDNN two to four times as long as our kernel on an H200: all with stride 2, and
    groups of 64 channels with stride 1."""
    return stride == 2 or weight.shape[1] == len(weight) // groups == 64


def _kernel_fits(x_NHWC: Tensor, weight: Tensor, stride: int, groups: int) -> bool:
    """Whether our kernel can do it: the groups' widths are powers of two that fill a matrix unit."""
    widths = (weight.shape[1], len(weight) // groups)
    divides = stride <= 2 and x_NHWC.shape[1] % stride == 0 and x_NHWC.shape[2] % stride == 0
    return divides and all(16 <= width <= 128 and width & (width - 1) == 0 for width in widths)


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
        x_NHWC, weight = ctx.saved_tensors
        options = weight, ctx.stride, ctx.groups
        own = _is_slow_in_cudnn(*options) and _kernel_fits(x_NHWC, *options)
        dx_NHWC = input_gradient(g_NHWC, *options) if own else _by_cudnn(g_NHWC, x_NHWC, *options, wanted=0)
        if not ctx.needs_input_grad[1]:
            return dx_NHWC, None, None, None
        grad_weight = run_beside(lambda: _by_cudnn(g_NHWC, x_NHWC, *options, wanted=1).float(), g_NHWC, x_NHWC)
        return dx_NHWC, grad_weight, None, None


def _by_cudnn(g_NHWC: Tensor, x_NHWC: Tensor, weight: Tensor, stride: int, groups: int, *, wanted: int) -> Tensor:
    """The gradient of the input (0), channels-last, or of the weight (1)."""
    gradient = torch.ops.aten.convolution_backward(
        g_NHWC.permute(0, 3, 1, 2), x_NHWC.permute(0, 3, 1, 2), weight, None, [stride] * 2, [1, 1], [1, 1],
        False, [0, 0], groups, [wanted == 0, wanted == 1, False],
    )[wanted]  # fmt: skip
    return gradient.permute(0, 2, 3, 1).contiguous() if wanted == 0 else gradient


def grouped(x_NHWC: Tensor, conv: nn.Conv2d) -> Tensor:
    """W alone of a grouped 3×3 convolution: s is in x already, and r goes into the BatchNorm that follows."""
    return _Grouped.apply(x_NHWC, conv.weight, conv.stride[0], conv.groups)
