"""What the residual networks share: a convolution with its BatchNorm, the residual sum, the initial weights."""

import math

import torch
from torch import Tensor, nn


def conv_norm(in_channels: int, out_channels: int, kernel: int, *, stride: int = 1, groups: int = 1) -> nn.Sequential:
    """A convolution that keeps the size (up to its stride), without bias, and BatchNorm."""
    conv = nn.Conv2d(in_channels, out_channels, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(out_channels))


def add_branch(shortcut_NCHW: Tensor, branch_NCHW: Tensor, keep_N: Tensor | None) -> Tensor:
    """The residual sum; `keep_N` drops or rescales each row's branch (stochastic depth)."""
    if keep_N is not None:
        branch_NCHW = branch_NCHW * keep_N[:, None, None, None].to(branch_NCHW.dtype)
    return shortcut_NCHW + branch_NCHW


def initialise(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """SPEC D1: convolutions N(0, 2/(k²·out)), the linear layer Kaiming normal with bias 0, BatchNorm 1 and 0."""
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = math.prod(module.kernel_size) * module.out_channels
            nn.init.normal_(module.weight, 0.0, math.sqrt(2 / fan_out), generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
