"""The wide ResNet against the published network."""

import math
from typing import Any

import pytest
import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear, Ensemble, wide_resnet
from counterpoint.nn.wide_resnet import WideResNet


def plain(depth: int = 10, widen: int = 1) -> Any:
    network = wide_resnet(10, depth=depth, widen=widen)
    assert isinstance(network, WideResNet)
    return network


@pytest.mark.parametrize(("depth", "widen", "millions"), [(28, 10, 36.5), (16, 8, 11.0), (40, 4, 8.9)])
def test_its_size_is_the_published_one(depth: int, widen: int, millions: float) -> None:
    """Table 4 of Zagoruyko and Komodakis 2016."""
    network = plain(depth, widen)
    assert round(sum(p.numel() for p in network.parameters()) / 1e6, 1) == millions


def test_it_has_as_many_convolutions_as_its_name_says() -> None:
    network = plain(28, 2)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert len(convolutions) == 28
    assert len([m for m in convolutions if m.kernel_size == (1, 1)]) == 3, "a shortcut for each stage"
    assert network.num_blocks == len(network.blocks) == 12
    assert [block.second.out_channels for block in network.blocks] == [32] * 4 + [64] * 4 + [128] * 4
    assert [block.first[0].stride[0] for block in network.blocks] == [1] * 4 + [2] + [1] * 3 + [2] + [1] * 3


def test_activations_come_before_convolutions() -> None:
    """The forward pass by hand, with the functions of the paper's figure."""
    network = plain(10, 2).eval()
    images = torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    x = network.stem(images)
    for block in network.blocks:
        active = torch.relu(block.norm(x))
        inner = torch.relu(block.first[1](block.first[0](active)))
        changes = block.first[0].in_channels != block.first[0].out_channels
        x = (block.shortcut(active) if changes else x) + block.second(inner)
    expected = network.classifier(torch.relu(network.norm(x)).mean(dim=(2, 3)))
    torch.testing.assert_close(network(images), expected)


def test_every_layer_of_an_ensemble_has_r_and_s() -> None:
    ensemble = wide_resnet(10, 3, depth=10, widen=2, in_channels=1)
    assert isinstance(ensemble, Ensemble)
    layers = [m for m in ensemble.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 1 + 3 * 2 + 3 + 1
    assert all(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in layers)
    assert ensemble.num_blocks == 3
    assert ensemble(torch.randn(3, 2, 1, 20, 28)).shape == (3, 2, 10)


def test_initial_weights_come_from_the_generator() -> None:
    first, again = (wide_resnet(10, 2, 10, 1, generator=torch.Generator().manual_seed(0)).state_dict() for _ in "ab")
    assert all(torch.equal(first[name], again[name]) for name in first)
    weight = first["network.blocks.2.second.weight"]
    assert abs(weight.std() / math.sqrt(2 / (9 * 64)) - 1) < 0.05


@pytest.mark.parametrize(
    ("depth", "widen", "message"), [(12, 1, "6n . 4: 10, 16"), (4, 1, "6n"), (10, 0, "widen is 0")]
)
def test_wrong_sizes_are_refused(depth: int, widen: int, message: str) -> None:
    with pytest.raises(InputError, match=message):
        wide_resnet(10, depth=depth, widen=widen)
