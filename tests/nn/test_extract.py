"""Folded members against the network they come from."""

import pytest
import torch
from torch import Tensor, nn

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
    """BatchNorm where it cannot be folded: before the convolution, after a ReLU, between calls, without statistics."""

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


def test_batchnorm_that_cannot_be_folded_stays() -> None:
    ensemble = ensemble_of(NormFirst())
    folded = fold(ensemble)
    assert sum(isinstance(module, nn.BatchNorm2d) for module in folded.modules()) == 4
    assert relative_difference(ensemble, images_of(5)) < 1e-5
    backwards = ensemble_of(nn.Sequential(Backwards(nn.Conv2d(3, 3, 3), nn.BatchNorm2d(3)), nn.Flatten()))
    assert relative_difference(backwards, images_of(5)) < 1e-5


def test_layers_with_a_second_use_keep_it() -> None:
    conv, norm = nn.Conv2d(3, 3, 3, padding=1, padding_mode="reflect"), nn.BatchNorm2d(3, affine=True)
    again = nn.Sequential(conv, norm, nn.ReLU(), conv, nn.ReLU(), conv, norm, norm, nn.Flatten())
    ensemble = ensemble_of(again)
    assert relative_difference(ensemble, images_of(4)) < 1e-5
    members = batch_ensemble(nn.Sequential(again, nn.Linear(192, 5)), 2).eval()
    assert relative_difference(members, images_of(4)) < 1e-5


def test_batchnorm_without_affine_parameters_is_folded() -> None:
    layers = nn.Sequential(nn.Conv2d(3, 5, 3, bias=True), nn.BatchNorm2d(5, affine=False), nn.Flatten())
    assert isinstance(layers[1], nn.BatchNorm2d)
    layers[1].running_mean = torch.randn(5)
    layers[1].running_var = torch.rand(5) + 0.1
    ensemble = Ensemble(layers).eval()
    assert relative_difference(ensemble, images_of(4)) < 1e-5
    assert not any(isinstance(module, nn.BatchNorm2d) for module in fold(ensemble).modules())
