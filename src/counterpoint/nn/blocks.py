"""What the residual networks share: convolution with BatchNorm, the residual sum, the frame, the initial weights."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from counterpoint.errors import whole_number
from counterpoint.nn.conversion import BatchNorm, batch_ensemble
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.one_member import ConvNorm


def check_sizes(**sizes: int) -> None:
    """Raise unless all sizes of a network are whole numbers of 1 or more."""
    for name, size in sizes.items():
        whole_number(name, size, 1)


def conv_norm(in_channels: int, out_channels: int, kernel: int, *, stride: int = 1, groups: int = 1) -> ConvNorm:
    """A convolution that keeps the size (up to its stride), without bias, and BatchNorm."""
    conv = nn.Conv2d(in_channels, out_channels, kernel, stride, padding=kernel // 2, groups=groups, bias=False)
    return ConvNorm(conv, nn.BatchNorm2d(out_channels))


def shortcut(in_channels: int, out_channels: int, stride: int) -> nn.Module:
    """The identity, or a 1×1 convolution where the number of channels changes."""
    if in_channels == out_channels:
        return nn.Identity()
    return conv_norm(in_channels, out_channels, 1, stride=stride)


def add_branch(shortcut: Tensor, branch: Tensor, keep_N: Tensor | None) -> Tensor:
    """The residual sum of (N, …); `keep_N` drops or rescales each row's branch (stochastic depth)."""
    if keep_N is not None:
        branch = branch * keep_N.view(-1, *(1,) * (branch.dim() - 1)).to(branch.dtype)
    return shortcut + branch


def run_blocks(blocks: Iterable[nn.Module], x: Tensor, keep: Tensor | None) -> Tensor:
    """`x` after all residual blocks (x, keep) → x; `keep` (blocks, N) is what each block's branch is multiplied by."""
    for i, block in enumerate(blocks):
        x = block(x, None if keep is None else keep[i])
    return x


class ResidualNetwork(nn.Module):
    """A stem, residual blocks (x, keep) → x, global mean pool, a linear layer."""

    def __init__(self, stem: nn.Module, blocks: Sequence[nn.Module], channels: int, num_classes: int) -> None:
        super().__init__()
        self.stem = stem
        self.blocks = nn.ModuleList(blocks)
        self.classifier = nn.Linear(channels, num_classes)
        self.num_blocks = len(blocks)

    def forward(self, images_NCHW: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (N, K); `keep` (blocks, N) is what each block's branch is multiplied by."""
        x = run_blocks(self.blocks, torch.relu(self.stem(images_NCHW)), keep)
        return self.classifier(x.mean(dim=(2, 3)))


def initialise(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """Draw the weights (docs/paper.md, 1): convolutions N(0, 2/(k²·out)), the linear layer Kaiming normal with bias 0.

    BatchNorm keeps the scale 1 and the bias 0 that it is made with.
    """
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = math.prod(module.kernel_size) * module.out_channels
            nn.init.normal_(module.weight, 0.0, math.sqrt(2 / fan_out), generator=generator)
        elif isinstance(module, nn.Linear):
            nn.init.kaiming_normal_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)


Network = TypeVar("Network", bound=nn.Module)


def finish(
    network: Network,
    num_members: int | None,
    *,
    batchnorm: BatchNorm,
    init_std: float,
    generator: torch.Generator | None,
    draw: Callable[[nn.Module, torch.Generator | None], None] = initialise,
) -> Network | Ensemble:
    """The network with its initial weights, which `draw` draws, or with `num_members` a BatchEnsemble of it."""
    if not any(parameter.is_meta for parameter in network.parameters()):  # or torch would import its compiler for it
        draw(network, generator)
    if num_members is None:
        return network
    return batch_ensemble(network, num_members, init_std, batchnorm, generator=generator)
