import pytest
import torch

from counterpoint.nn import resnet, resnext29


@pytest.mark.parametrize("build", [resnext29, resnet], ids=["resnext29", "resnet"])
def test_a_dropped_branch_leaves_the_shortcut(build: object) -> None:
    """Each block by hand: relu(shortcut + factor · branch), for every row its own factor."""
    network = build(4).eval()  # type: ignore[operator]
    images = torch.randn(3, 3, 16, 16)
    keep = torch.tensor([0.0, 1.0, 2.0]).repeat(network.num_blocks, 1)
    keep[1:, 0] = 1
    x = torch.relu(network.stem(images))
    for block, keep_N in zip(network.blocks, keep, strict=True):
        full = block(x)
        shortcut = torch.relu(block.shortcut(x))
        inner = block(x, torch.full((3,), 2.0))
        rows = {0.0: shortcut, 1.0: full, 2.0: inner}
        x = torch.stack([rows[float(k)][n] for n, k in enumerate(keep_N)])
    expected = network.classifier(x.mean(dim=(2, 3)))
    torch.testing.assert_close(network(images, keep), expected)
