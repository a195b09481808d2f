"""Folded members against the network they come from."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.prune import l1_unstructured

from counterpoint.nn import Ensemble, batch_ensemble, resnet, resnext29
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.one_member import fold


def ensemble_of(network: nn.Module) -> Ensemble:
    """In evaluation mode, with BatchNorm as after a training: nothing in it is 0 or 1 any more."""
    generator = torch.Generator().manual_seed(1)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for name, tensor in module.state_dict().items():
                if name in ("weight", "running_var"):
                    tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
                elif name in ("bias", "running_mean"):
                    tensor.copy_(torch.randn(tensor.shape, generator=generator))
    return (network if isinstance(network, Ensemble) else Ensemble(network)).eval()


def images_of(rows: int, channels: int = 3, side: int = 8) -> Tensor:
    return torch.randn(rows, channels, side, side, generator=torch.Generator().manual_seed(2))


@torch.no_grad()
def relative_difference(ensemble: Ensemble, images_BCHW: Tensor, dtype: torch.dtype = torch.float32) -> float:
    expected_MBK = ensemble(images_BCHW.expand(ensemble.num_members, *images_BCHW.shape))
    folded = fold(ensemble).to(dtype)
    logits_MBK = torch.stack([member(images_BCHW.to(dtype)).float() for member in folded])
    return ((logits_MBK - expected_MBK).abs().max() / expected_MBK.abs().max()).item()


NETWORKS = [
    (resnet, {"depth": 8, "width": 4, "in_channels": 1}, (5, 1, 8)),
    (resnet, {"depth": 14, "width": 6}, (2, 3, 11)),
    (resnext29, {"cardinality": 2, "base_width": 4}, (3, 3, 8)),
    (resnext29, {"cardinality": 4, "base_width": 8}, (1, 3, 16)),
]


@pytest.mark.parametrize("batchnorm", ["shared", "per-member", None])
@pytest.mark.parametrize(("build", "options", "shape"), NETWORKS)
def test_folded_members_are_the_members(
    build: type, options: dict[str, int], shape: tuple[int, int, int], batchnorm: BatchNorm | None
) -> None:
    generator = torch.Generator().manual_seed(0)
    members = {} if batchnorm is None else {"num_members": 3, "batchnorm": batchnorm}
    ensemble = ensemble_of(build(10, **options, **members, generator=generator))
    assert len(fold(ensemble)) == (3 if batchnorm else 1)
    assert relative_difference(ensemble, images_of(*shape)) < 1e-5
    assert relative_difference(ensemble, images_of(*shape), torch.bfloat16) < 3e-2


def test_no_batchnorm_and_no_member_is_left() -> None:
    folded = fold(ensemble_of(resnext29(10, 2, 2, 4, batchnorm="per-member")))
    kinds = {type(module) for module in folded.modules()}
    assert kinds & {nn.Conv2d, nn.Linear}
    assert not {kind for kind in kinds if issubclass(kind, nn.BatchNorm2d) or "BatchEnsemble" in kind.__name__}


def test_the_ensemble_is_left_as_it_is() -> None:
    ensemble = ensemble_of(resnet(10, 2, width=4)).train()
    before = {name: tensor.clone() for name, tensor in ensemble.state_dict().items()}
    folded = fold(ensemble)
    assert not any(module.training for module in folded.modules())
    assert all(module.training for module in ensemble.modules())
    assert all(torch.equal(tensor, before[name]) for name, tensor in ensemble.state_dict().items())
    assert not {p.data_ptr() for p in folded.parameters()} & {p.data_ptr() for p in ensemble.parameters()}


class NormFirst(nn.Module):
    """BatchNorm before the convolution, after a ReLU, between calls, without statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.BatchNorm2d(3), nn.Conv2d(3, 6, 3), nn.ReLU(), nn.BatchNorm2d(6), nn.Conv2d(6, 6, 1)
        )
        self.unknown = nn.Sequential(nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6, track_running_stats=False))
        self.norm = nn.BatchNorm2d(6)
        self.head = nn.Linear(6, 4)

    def forward(self, images_NCHW: Tensor) -> Tensor:
        return self.head(self.norm(self.unknown(self.layers(images_NCHW))).mean(dim=(2, 3)))


class Backwards(nn.Sequential):
    """A Sequential that is none: its forward calls the layers in the other order."""

    def forward(self, input: Tensor) -> Tensor:
        return self[0](self[1](input))


class Apart(nn.Module):
    """A Sequential that is never called as a whole: what lies between its layers is used too."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6))
        self.head = nn.Linear(12, 4)

    def forward(self, images_NCHW: Tensor) -> Tensor:
        first = self.layers[0](images_NCHW)
        return self.head(torch.cat([first, self.layers[1](first)], 1).mean(dim=(2, 3)))


def doubled(_: nn.Module, _inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
    return 2 * output


def with_hook() -> nn.Module:
    """A hook changes what BatchNorm gets."""
    layers = nn.Sequential(nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.Flatten())
    layers[0].register_forward_hook(doubled)
    return layers


@torch.no_grad()
def with_pruned_weight() -> nn.Module:
    """A hook computes the weight before each call."""
    conv = l1_unstructured(nn.Conv2d(3, 6, 3), "weight", 0.5)
    return nn.Sequential(conv, nn.BatchNorm2d(6), nn.Flatten())


def backwards() -> nn.Module:
    return nn.Sequential(Backwards(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)), nn.Flatten())


def with_second_uses() -> nn.Module:
    conv, norm = nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(3)
    return nn.Sequential(conv, norm, nn.ReLU(), conv, nn.ReLU(), conv, norm, norm, nn.Flatten())


@pytest.mark.parametrize("build", [NormFirst, Apart, backwards, with_hook, with_pruned_weight, with_second_uses])
def test_a_strangers_batchnorm_stays(build: Callable[[], nn.Module]) -> None:
    """Only counterpoint's own networks say that nothing comes between a convolution and its BatchNorm."""
    ensemble = ensemble_of(build())
    norms = [module for module in ensemble.modules() if isinstance(module, nn.BatchNorm2d)]
    assert relative_difference(ensemble, images_of(4)) < 1e-5
    assert [type(module) for module in fold(ensemble).modules() if isinstance(module, nn.BatchNorm2d)] == [
        type(norm) for norm in norms
    ]


def test_hooks_on_a_network_of_ours_keep_its_batchnorm() -> None:
    network = resnet(10, width=4)
    network.get_submodule("stem.0").register_forward_hook(doubled)
    ensemble = ensemble_of(network)
    assert relative_difference(ensemble, images_of(4)) < 1e-5
    assert sum(isinstance(module, nn.BatchNorm2d) for module in fold(ensemble).modules()) == 1


def test_layers_of_a_batch_ensemble_with_a_second_use_keep_it() -> None:
    members = batch_ensemble(nn.Sequential(with_second_uses(), nn.Linear(192, 5)), 2).eval()
    assert relative_difference(members, images_of(4)) < 1e-5
