import math

import torch
from torch import Tensor, nn

from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear, resnext29


def count_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def count_macs(model: nn.Module, image: Tensor) -> int:
    """Multiply-adds of every convolution and linear layer for one image, counted by hooks."""
    total = 0

    def hook(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        total += output[0].numel() * layer.weight[0].numel()  # type: ignore[index]

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(hook)
    model(image)
    return total


def test_resnext29_is_the_one_of_the_augmix_code() -> None:
    """The figures of docs/paper.md, 1."""
    network = resnext29(10)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert count_parameters(network) == 6_807_882
    assert (len(convolutions), sum(isinstance(m, nn.Linear) for m in network.modules())) == (31, 1)
    assert round(count_macs(network.eval(), torch.randn(1, 3, 32, 32)) / 1e9, 2) == 1.07
    assert count_parameters(resnext29(10, cardinality=32, base_width=4)) == 4_775_754


def test_every_layer_of_an_ensemble_has_r_and_s() -> None:
    ensemble = resnext29(10, num_members=4)
    layers = [m for m in ensemble.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 32
    assert all(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in layers)
    factors = sum(m.in_channels + m.out_channels for m in layers if isinstance(m, BatchEnsembleConv2d))
    extra = 4 * (factors + 1024 + 10) + 3 * 10  # r and s of the linear layer, and three more biases
    assert count_parameters(ensemble) == 6_807_882 + extra
    assert ensemble(torch.randn(4, 2, 3, 32, 32)).shape == (4, 2, 10)


def test_initial_weights_follow_the_specification() -> None:
    network = resnext29(10, generator=torch.Generator().manual_seed(0))
    for conv in (m for m in network.modules() if isinstance(m, nn.Conv2d)):
        std = math.sqrt(2 / (math.prod(conv.kernel_size) * conv.out_channels))
        assert abs(conv.weight.std() / std - 1) < 5 / math.sqrt(conv.weight.numel())
    linear = network.classifier
    assert isinstance(linear, nn.Linear)
    assert abs(linear.weight.std() / math.sqrt(2 / 1024) - 1) < 0.05
    assert linear.bias.abs().max() == 0
