"""Stochastic depth: what `keep` does to every network's residual branches."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn import resnet, resnext29, vit, wide_resnet


def pooled(network: Any, x: Tensor) -> Tensor:
    logits: Tensor = network.classifier(x.mean(dim=(2, 3)))
    return logits


def normed_and_pooled(network: Any, x: Tensor) -> Tensor:
    return pooled(network, torch.relu(network.norm(x)))


def shortcut_then_relu(block: Any, x: Tensor) -> Tensor:
    return torch.relu(block.shortcut(x))


def shortcut_of_what_the_branch_sees(block: Any, x: Tensor) -> Tensor:
    changes = isinstance(block.shortcut, nn.Conv2d)
    return block.shortcut(torch.relu(block.norm(x))) if changes else x


NETWORKS: dict[str, tuple[Callable[..., Any], Callable[..., Tensor], Callable[..., Tensor]]] = {
    "resnext29": (resnext29, shortcut_then_relu, pooled),
    "resnet": (resnet, shortcut_then_relu, pooled),
    "wide-resnet": (partial(wide_resnet, depth=10, widen=2), shortcut_of_what_the_branch_sees, normed_and_pooled),
}


def first_values(network: Any, images: Tensor) -> Tensor:
    x: Tensor = network.stem(images)
    return torch.relu(x) if isinstance(network.stem, nn.Sequential) else x


def each_rows_own(block: Any, x: Tensor, dropped: Tensor, keep_N: Tensor) -> Tensor:
    """Row by row: the shortcut alone, the whole block, or the block with its branch doubled."""
    rows = {0.0: dropped, 1.0: block(x), 2.0: block(x, torch.full((len(x),), 2.0))}
    return torch.stack([rows[float(k)][n] for n, k in enumerate(keep_N)])


def mask(blocks: int) -> Tensor:
    """The first image loses its first branch, the second is left as it is, the third has every branch doubled."""
    keep = torch.tensor([0.0, 1.0, 2.0]).repeat(blocks, 1)
    keep[1:, 0] = 1
    return keep


@pytest.mark.parametrize("name", NETWORKS)
def test_a_dropped_branch_leaves_the_shortcut(name: str) -> None:
    build, shortcut, finish = NETWORKS[name]
    network = build(4).eval()
    images = torch.randn(3, 3, 16, 16)
    keep = mask(network.num_blocks)
    x = first_values(network, images)
    for block, keep_N in zip(network.blocks, keep, strict=True):
        x = each_rows_own(block, x, shortcut(block, x), keep_N)
    torch.testing.assert_close(network(images, keep), finish(network, x))


def test_a_transformers_dropped_branch_leaves_its_input() -> None:
    network: Any = vit(4, depth=2, width=16, heads=2).eval()
    keep = mask(4)
    given: list[Tensor] = []
    last: list[Tensor] = []
    network.blocks[0].register_forward_hook(lambda _, inputs, __: given.append(inputs[0]))
    network.blocks[-1].register_forward_hook(lambda *call: last.append(call[2]))
    network(torch.randn(3, 3, 16, 16), keep)
    x_NTD = given[0]
    for block, keep_N in zip(network.blocks, keep, strict=True):
        x_NTD = each_rows_own(block, x_NTD, x_NTD, keep_N)
    torch.testing.assert_close(last[0], x_NTD)


@pytest.mark.parametrize(
    "build",
    [resnext29, resnet, partial(wide_resnet, depth=10, widen=1), partial(vit, depth=1, width=16)],
    ids=["resnext29", "resnet", "wide-resnet", "vit"],
)
def test_doubling_a_branch_changes_what_is_said(build: Callable[..., Any]) -> None:
    network = build(4, generator=torch.Generator().manual_seed(0)).eval()
    images = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1))
    ones = torch.ones(network.num_blocks, 2)
    torch.testing.assert_close(network(images, ones), network(images))
    for i in range(len(ones)):
        doubled = ones.clone()
        doubled[i, 0] = 2
        logits = network(images, doubled)
        assert not torch.allclose(logits[0], network(images)[0]), f"branch {i} is not in use"
        torch.testing.assert_close(logits[1], network(images)[1])
