"""A small ResNet for small images and small machines: depth 6n + 2, as in He et al. 2015, section 4.2."""

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.blocks import ResidualNetwork, add_branch, check_sizes, conv_norm, finish, shortcut
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.ensemble import Ensemble


class _BasicBlock(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.first = conv_norm(in_channels, out_channels, 3, stride=stride)
        self.second = conv_norm(out_channels, out_channels, 3)
        self.shortcut = shortcut(in_channels, out_channels, stride)

    def forward(self, x_NCHW: Tensor, keep_N: Tensor | None = None) -> Tensor:
        branch = self.second(torch.relu(self.first(x_NCHW)))
        return torch.relu(add_branch(self.shortcut(x_NCHW), branch, keep_N))


class ResNet(ResidualNetwork):
    """Three stages of (depth − 2) / 6 basic blocks with `width`, 2·`width` and 4·`width` channels."""

    def __init__(self, num_classes: int, depth: int, width: int, in_channels: int = 3) -> None:
        check_sizes(num_classes=num_classes, depth=depth, width=width, in_channels=in_channels)
        if depth < 8 or (depth - 2) % 6:
            raise InputError(f"depth is {depth}; it must be 6n + 2: 8, 14, 20, 26, …")
        blocks = []
        channels = width
        for stage in range(3):
            for i in range((depth - 2) // 6):
                out = width * 2**stage
                blocks.append(_BasicBlock(channels, out, stride=2 if stage > 0 and i == 0 else 1))
                channels = out
        super().__init__(conv_norm(in_channels, width, 3), blocks, channels, num_classes)


def resnet(
    num_classes: int,
    num_members: int | None = None,
    depth: int = 8,
    width: int = 16,
    *,
    in_channels: int = 3,
    batchnorm: BatchNorm = "shared",
    init_std: float = 0.5,
    generator: torch.Generator | None = None,
) -> ResNet | Ensemble:
    """A small ResNet of depth 6n + 2: a plain network, or with `num_members` a BatchEnsemble of it.

    `width` is the number of channels in its first stage.

    >>> import torch
    >>> from counterpoint import resnet
    >>> resnet(num_classes=10, width=8)(torch.randn(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    >>> resnet(num_classes=10, num_members=4, width=8)(torch.randn(4, 2, 3, 32, 32)).shape
    torch.Size([4, 2, 10])
    """
    network = ResNet(num_classes, depth, width, in_channels)
    return finish(network, num_members, batchnorm=batchnorm, init_std=init_std, generator=generator)
