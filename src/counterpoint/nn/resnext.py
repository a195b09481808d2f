"""ResNeXt-29 for small images, as the AugMix code builds it (docs/paper.md, 1)."""

import torch
from torch import Tensor, nn

from counterpoint.nn.blocks import ResidualNetwork, add_branch, check_sizes, conv_norm, finish, shortcut
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.ensemble import Ensemble

_STAGES = ((64, 1), (128, 2), (256, 2))  # base planes and stride of the first block
_BLOCKS_PER_STAGE = 3
_EXPANSION = 4


class Bottleneck(nn.Module):
    """1×1, grouped 3×3, 1×1, each with BatchNorm, and the shortcut."""

    def __init__(self, in_channels: int, inner: int, out_channels: int, stride: int, groups: int) -> None:
        super().__init__()
        self.reduce = conv_norm(in_channels, inner, 1)
        self.grouped = conv_norm(inner, inner, 3, stride=stride, groups=groups)
        self.expand = conv_norm(inner, out_channels, 1)
        self.shortcut = shortcut(in_channels, out_channels, stride)

    def forward(self, x_NCHW: Tensor, keep_N: Tensor | None = None) -> Tensor:
        branch = torch.relu(self.reduce(x_NCHW))
        branch = torch.relu(self.grouped(branch))
        return torch.relu(add_branch(self.shortcut(x_NCHW), self.expand(branch), keep_N))


class ResNeXt29(ResidualNetwork):
    """Three stages of three bottlenecks, post-activation."""

    def __init__(self, num_classes: int, cardinality: int, base_width: int, in_channels: int) -> None:
        check_sizes(num_classes=num_classes, cardinality=cardinality, base_width=base_width, in_channels=in_channels)
        blocks = []
        channels = 64
        for planes, first_stride in _STAGES:
            inner = planes * base_width // 64 * cardinality
            for i in range(_BLOCKS_PER_STAGE):
                out = planes * _EXPANSION
                blocks.append(Bottleneck(channels, inner, out, first_stride if i == 0 else 1, cardinality))
                channels = out
        super().__init__(conv_norm(in_channels, 64, 3), blocks, channels, num_classes)


def resnext29(
    num_classes: int,
    num_members: int | None = None,
    cardinality: int = 4,
    base_width: int = 32,
    *,
    in_channels: int = 3,
    batchnorm: BatchNorm = "shared",
    init_std: float = 0.5,
    generator: torch.Generator | None = None,
) -> ResNeXt29 | Ensemble:
    """ResNeXt-29, the paper's network: a plain network, or with `num_members` a BatchEnsemble of it.

    >>> from counterpoint import resnext29
    >>> network = resnext29(num_classes=10)
    >>> sum(parameter.numel() for parameter in network.parameters())
    6807882
    """
    network = ResNeXt29(num_classes, cardinality, base_width, in_channels)
    return finish(network, num_members, batchnorm=batchnorm, init_std=init_std, generator=generator)
