"""A small vision transformer (Dosovitskiy et al. 2021) in the plain form of Beyer et al. 2022.

Positions are fixed waves, and in the end the tokens are averaged. So there is neither a table of positions nor a class
token, and images may have any size that patches divide. Shapes: N rows, T tokens, D the width, H heads.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, scaled_dot_product_attention

from counterpoint.errors import InputError
from counterpoint.nn.blocks import add_branch, check_sizes, finish, run_blocks
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.ensemble import Ensemble

_INNER = 4  # the width inside an MLP, in units of the width


class Attention(nn.Module):
    """x + attention(norm(x)), a residual branch."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x_NTD: Tensor, keep_N: Tensor | None = None) -> Tensor:
        qkv_NT3HC = self.qkv(self.norm(x_NTD)).unflatten(2, (3, self.heads, -1))
        attended_NHTC = scaled_dot_product_attention(*qkv_NT3HC.permute(2, 0, 3, 1, 4))
        return add_branch(x_NTD, self.out(attended_NHTC.transpose(1, 2).flatten(2)), keep_N)


class MLP(nn.Module):
    """x + mlp(norm(x)), a residual branch."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.inner = nn.Linear(width, _INNER * width)
        self.out = nn.Linear(_INNER * width, width)

    def forward(self, x_NTD: Tensor, keep_N: Tensor | None = None) -> Tensor:
        return add_branch(x_NTD, self.out(gelu(self.inner(self.norm(x_NTD)))), keep_N)


class ViT(nn.Module):
    """Patches, `depth` times attention and MLP, the tokens' mean, a linear layer.

    Stochastic depth can drop attention and MLP separately, so there are 2·`depth` blocks.
    """

    def __init__(
        self,
        num_classes: int,
        patch_size: int,
        depth: int,
        width: int,
        heads: int,
        in_channels: int,
    ) -> None:
        sizes = {"patch_size": patch_size, "depth": depth, "width": width, "heads": heads}
        check_sizes(num_classes=num_classes, in_channels=in_channels, **sizes)
        if width % 4 or width % heads:
            raise InputError(f"width of the ViT is {width}; it must be a multiple of 4 and of its {heads} heads")
        super().__init__()
        self.patches = nn.Conv2d(in_channels, width, patch_size, stride=patch_size)
        self.blocks = nn.ModuleList(block for _ in range(depth) for block in (Attention(width, heads), MLP(width)))
        self.norm = nn.LayerNorm(width)
        self.classifier = nn.Linear(width, num_classes)
        self.num_blocks = len(self.blocks)

    def forward(self, images_NCHW: Tensor, keep: Tensor | None = None) -> Tensor:
        """Logits (N, K); `keep` (blocks, N) is what each block's branch is multiplied by."""
        self.check_size(*images_NCHW.shape[2:])
        patches_NDHW = self.patches(images_NCHW)
        _, width, rows, columns = patches_NDHW.shape
        positions_TD = waves(width, rows, columns, patches_NDHW.device).to(patches_NDHW.dtype)
        tokens_NTD = patches_NDHW.flatten(2).transpose(1, 2) + positions_TD
        x_NTD = run_blocks(self.blocks, tokens_NTD, keep)
        return self.classifier(self.norm(x_NTD).mean(dim=1))

    def check_size(self, height: int, width: int) -> None:
        """Raise unless images of this size can be divided into patches."""
        size = self.patches.kernel_size[0]
        if height % size or width % size:
            raise InputError(
                f"images of {height}×{width} pixels do not divide into patches of {size}×{size}; "
                "choose another patch_size"
            )


def waves(width: int, rows: int, columns: int, device: torch.device | None = None) -> Tensor:
    """Fixed positions (T, width): sines and cosines of each patch's column and row, at width / 4 frequencies."""
    exponents = torch.arange(width // 4, device=device) / max(width // 4 - 1, 1)
    frequencies = torch.exp(-math.log(10_000) * exponents)
    row_T = torch.arange(rows, device=device).repeat_interleave(columns)
    column_T = torch.arange(columns, device=device).repeat(rows)
    angles = [place_T[:, None] * frequencies for place_T in (column_T, row_T)]
    return torch.cat([wave(angle) for angle in angles for wave in (torch.sin, torch.cos)], dim=1)


def initialise_vit(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """Draw the weights: linear layers Glorot uniform, the patches' N(0, 1/inputs), biases 0.

    LayerNorm keeps the scale 1 and the bias 0 that it is made with.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight, generator=generator)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Conv2d):
            nn.init.normal_(module.weight, 0.0, 1 / math.sqrt(module.weight[0].numel()), generator=generator)
            assert module.bias is not None
            nn.init.zeros_(module.bias)


def vit(
    num_classes: int,
    num_members: int | None = None,
    patch_size: int = 4,
    depth: int = 6,
    width: int = 128,
    heads: int = 4,
    *,
    in_channels: int = 3,
    batchnorm: BatchNorm = "shared",
    init_std: float = 0.5,
    generator: torch.Generator | None = None,
) -> ViT | Ensemble:
    """A small vision transformer: a plain network, or with `num_members` a BatchEnsemble of it. It has no BatchNorm.

    >>> import torch
    >>> from counterpoint import vit
    >>> vit(num_classes=10, num_members=4, depth=2, width=32)(torch.randn(4, 2, 3, 32, 32)).shape
    torch.Size([4, 2, 10])
    """
    network = ViT(num_classes, patch_size, depth, width, heads, in_channels)
    return finish(
        network, num_members, batchnorm=batchnorm, init_std=init_std, generator=generator, draw=initialise_vit
    )
