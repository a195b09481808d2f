"""The small ViT against slow twins."""

import math

import pytest
import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear, Ensemble, vit
from counterpoint.nn.vit import MLP, Attention, ViT, waves


def plain(**options: int) -> ViT:
    small = {"depth": 2, "width": 16, "heads": 2} | options
    network = vit(10, generator=torch.Generator().manual_seed(0), **small)  # type: ignore[arg-type]
    assert isinstance(network, ViT)
    return network.eval()


@pytest.mark.parametrize(("size", "patch_size"), [((32, 32), 4), ((8, 12), 2), ((16, 8), 8)])
@pytest.mark.parametrize("channels", [1, 3])
def test_it_runs_on_images_of_any_size_that_patches_divide(
    size: tuple[int, int], patch_size: int, channels: int
) -> None:
    network = plain(patch_size=patch_size, in_channels=channels)
    assert network(torch.randn(5, channels, *size)).shape == (5, 10)


def test_every_layer_of_an_ensemble_has_r_and_s() -> None:
    ensemble = vit(10, 3, depth=2, width=16, heads=2)
    assert isinstance(ensemble, Ensemble)
    layers = [m for m in ensemble.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 1 + 2 * 4 + 1
    assert all(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in layers)
    assert ensemble.num_blocks == 4, "attention and MLP are dropped separately"
    assert ensemble(torch.randn(3, 2, 3, 8, 8)).shape == (3, 2, 10)


def attention_by_hand(block: Attention, x_TD: Tensor) -> Tensor:
    """One image, head by head and query by query."""
    width, size = x_TD.shape[1], x_TD.shape[1] // block.heads
    query, key, value = block.qkv(block.norm(x_TD)).split(width, dim=1)
    heads = []
    for head in range(block.heads):
        part = slice(head * size, (head + 1) * size)
        rows = [torch.softmax(q @ key[:, part].T / math.sqrt(size), dim=0) @ value[:, part] for q in query[:, part]]
        heads.append(torch.stack(rows))
    return x_TD + block.out(torch.cat(heads, dim=1))


def mlp_by_hand(block: MLP, x_TD: Tensor) -> Tensor:
    inner = block.inner(block.norm(x_TD))
    return x_TD + block.out(inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2))))


def test_the_network_by_hand() -> None:
    network = plain(patch_size=4).double()
    images = torch.randn(2, 3, 8, 12, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    logits = []
    for image in images:
        patches = [image[:, r : r + 4, c : c + 4] for r in (0, 4) for c in (0, 4, 8)]
        weight, bias = network.patches.weight.flatten(1), network.patches.bias
        x_TD = torch.stack([weight @ patch.flatten() + bias for patch in patches]) + waves(16, 2, 3).double()
        for block in network.blocks:
            x_TD = attention_by_hand(block, x_TD) if isinstance(block, Attention) else mlp_by_hand(block, x_TD)  # type: ignore[arg-type]
        logits.append(network.classifier(network.norm(x_TD).mean(dim=0)))
    torch.testing.assert_close(network(images), torch.stack(logits))


def test_positions_are_sines_and_cosines_of_column_and_row() -> None:
    positions = waves(16, 2, 3)
    for row in range(2):
        for column in range(3):
            found = positions[row * 3 + column].tolist()
            frequencies = [10_000 ** (-i / 3) for i in range(4)]
            expected = [
                wave(place * f) for place in (column, row) for wave in (math.sin, math.cos) for f in frequencies
            ]
            assert found == pytest.approx(expected, abs=1e-6)


def test_initial_weights_come_from_the_generator() -> None:
    first, again = (vit(10, 2, generator=torch.Generator().manual_seed(0)).state_dict() for _ in "ab")
    assert all(torch.equal(first[name], again[name]) for name in first)
    weight = first["network.blocks.0.qkv.weight"]
    assert abs(weight.std() / math.sqrt(2 / (128 + 384)) - 1) < 0.02
    assert abs(first["network.patches.weight"].std() / math.sqrt(1 / 48) - 1) < 0.05


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(InputError, match="width of the ViT is 18; it must be a multiple of 4 and of its 2 heads"):
        plain(width=18)
    with pytest.raises(InputError, match=r"width of the ViT is 20; .* of its 3 heads"):
        plain(width=20, heads=3)
    with pytest.raises(InputError, match="depth is 0; it must be a whole number of 1 or more"):
        plain(depth=0)
    with pytest.raises(InputError, match=r"images of 30×32 pixels do not divide into patches of 4×4; choose another"):
        plain()(torch.randn(1, 3, 30, 32))
