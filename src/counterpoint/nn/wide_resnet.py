"""Wide residual networks with pre-activation blocks (Zagoruyko and Komodakis 2016), for small images."""

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.blocks import add_branch, check_sizes, conv_norm, finish, run_blocks
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.ensemble import Ensemble


class PreActivationBlock(nn.Module):
    """BatchNorm, ReLU and a 3×3 convolution, twice. Nothing comes after the sum.

    Where the number of channels changes, the shortcut is a 1×1 convolution of what the branch sees too.
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(in_channels)
        self.first = conv_norm(in_channels, out_channels, 3, stride=stride)
        self.second = nn.Conv2d(out_channels, out_channels, 3, padding=1, bias=False)
        self.shortcut = (
            nn.Identity()
            if in_channels == out_channels
            else nn.Conv2d(in_channels, out_channels, 1, stride, bias=False)
        )

    def forward(self, x_NCHW: Tensor, keep_N: Tensor | None = None) -> Tensor:
        active = torch.relu(self.norm(x_NCHW))
        branch = self.second(torch.relu(self.first(active)))
        return add_branch(self.shortcut(active if isinstance(self.shortcut, nn.Conv2d) else x_NCHW), branch, keep_N)


class WideResNet(nn.Module):
    """Three stages of (depth − 4) / 6 blocks with 16, 32 and 64 times `widen` channels."""

    def __init__(self, num_classes: int, depth: int, widen: int, in_channels: int) -> None:
        check_sizes(num_classes=num_classes, depth=depth, widen=widen, in_channels=in_channels)
        if depth < 10 or (depth - 4) % 6:
            raise InputError(f"a wide ResNet's depth is {depth}; it must be 6n + 4: 10, 16, 22, 28, …")
        super().__init__()
        self.stem = nn.Conv2d(in_channels, 16, 3, padding=1, bias=False)
        self.blocks = nn.ModuleList()
        channels = 16
        for stage in range(3):
            for i in range((depth - 4) // 6):
                out = 16 * widen * 2**stage
                self.blocks.append(PreActivationBlock(channels, out, stride=2 if stage > 0 and i == 0 else 1))
                channels = out
        self.norm = nn.BatchNorm2d(channels)
        self.classifier = nn.Linear(channels, num_classes)
        self.num_blocks = len(self.blocks)

    def forward(self, images_NCHW: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (N, K); `keep` (blocks, N) is what each block's branch is multiplied by."""
        x = run_blocks(self.blocks, self.stem(images_NCHW), keep)
        return self.classifier(torch.relu(self.norm(x)).mean(dim=(2, 3)))


def wide_resnet(
    num_classes: int,
    num_members: int | None = None,
    depth: int = 28,
    widen: int = 10,
    *,
    in_channels: int = 3,
    batchnorm: BatchNorm = "shared",
    init_std: float = 0.5,
    generator: torch.Generator | None = None,
) -> WideResNet | Ensemble:
    """A wide ResNet: a plain network, or with `num_members` a BatchEnsemble of it.

    >>> import torch
    >>> from counterpoint import wide_resnet
    >>> wide_resnet(num_classes=10, depth=10, widen=1)(torch.randn(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """
    network = WideResNet(num_classes, depth, widen, in_channels)
    return finish(network, num_members, batchnorm=batchnorm, init_std=init_std, generator=generator)
