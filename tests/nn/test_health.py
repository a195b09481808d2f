"""The health of hand-made networks with known dead channels, and of real ones against a plain loop."""

import math
from collections.abc import Iterator
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn import Ensemble, Health, batch_ensemble, measure_health, resnet, resnext29
from counterpoint.nn.batch_ensemble import BatchEnsembleLinear


def slow_health(model: nn.Module) -> Health:
    """Channel by channel in Python."""
    channels = below_eps = dead_scales = 0
    for norm in model.modules():
        if isinstance(norm, nn.BatchNorm2d):
            channels += norm.num_features
            below_eps += sum(v < norm.eps for v in ([] if norm.running_var is None else norm.running_var.tolist()))
            dead_scales += sum(abs(w) < 0.001 for w in (norm.weight.tolist() if norm.affine else []))
    r, s = (list(slow_variances(model, name)) for name in "rs")
    return Health(
        channels,
        below_eps,
        dead_scales,
        math.sqrt(sum(r) / len(r)) if r else None,
        math.sqrt(sum(s) / len(s)) if s else None,
    )


def slow_variances(model: nn.Module, name: str) -> Iterator[float]:
    """The variance over members of each entry of r or s."""
    for key, factors_MC in model.named_parameters():
        if key.endswith(f".{name}"):
            for entries in zip(*factors_MC.tolist(), strict=True):
                mean = sum(entries) / len(entries)
                yield sum((entry - mean) ** 2 for entry in entries) / (len(entries) - 1)


def norm(running_var: list[float], weight: list[float], eps: float = 1e-5) -> nn.BatchNorm2d:
    layer = nn.BatchNorm2d(len(weight), eps=eps)
    layer.load_state_dict({**layer.state_dict(), "running_var": torch.tensor(running_var), "weight": Tensor(weight)})
    return layer


def test_lost_channels_are_counted_exactly() -> None:
    model = nn.Sequential(
        norm([1.0, 1.1e-5, 9e-6, 0.0], [1.0, -0.5, 0.0009, -0.0009]),
        norm([0.2, 0.05], [0.0011, 0.0], eps=0.1),
    )
    assert measure_health(model) == Health(6, below_eps=3, dead_scales=3, spread_r=None, spread_s=None)


def test_a_network_without_batchnorm_has_no_channels() -> None:
    assert measure_health(nn.Sequential(nn.Linear(3, 2), nn.ReLU())) == Health(0, 0, 0, None, None)


def test_a_norm_without_scales_or_statistics_has_none_to_lose() -> None:
    without_scales = nn.BatchNorm2d(3, affine=False)
    nn.init.zeros_(without_scales.running_var)  # type: ignore[arg-type]
    without_statistics = nn.BatchNorm1d(5, track_running_stats=False)
    nn.init.zeros_(without_statistics.weight)
    assert measure_health(without_scales) == Health(3, 3, 0, None, None)
    assert measure_health(without_statistics) == Health(5, 0, 5, None, None)


def test_each_member_of_per_member_batchnorm_has_its_channels() -> None:
    ensemble = batch_ensemble(nn.Sequential(nn.Conv2d(1, 3, 1), nn.BatchNorm2d(3)), 2, batchnorm="per-member")
    layer = ensemble.get_submodule("network.1")
    assert isinstance(layer, nn.BatchNorm2d)
    with torch.no_grad():
        layer.weight[4] = 0  # the second member's second channel
        layer.running_var[:2] = 0  # type: ignore[index]
    health = measure_health(ensemble)
    assert (health.channels, health.below_eps, health.dead_scales) == (6, 2, 1)


def test_the_spread_by_hand() -> None:
    layer = BatchEnsembleLinear(1, 2, num_members=2)
    layer.load_state_dict({**layer.state_dict(), "r": Tensor([[1, 5], [3, 5]]), "s": Tensor([[7], [7]])})
    health = measure_health(Ensemble(layer, 2))
    # Variances of r: (1 + 1) / 1 = 2 and 0, whose mean is 1.
    assert (health.spread_r, health.spread_s) == (1.0, 0.0)


def test_one_member_has_nobody_to_differ_from() -> None:
    health = measure_health(Ensemble(BatchEnsembleLinear(1, 2, num_members=1)))
    assert (health.spread_r, health.spread_s) == (None, None)


def test_a_spread_that_is_no_number_is_none() -> None:
    layer = BatchEnsembleLinear(1, 2, num_members=2)
    nn.init.constant_(layer.r, math.nan)
    nn.init.constant_(layer.s, 1.0)
    health = measure_health(Ensemble(layer, 2))
    assert (health.spread_r, health.spread_s) == (None, 0.0)


@pytest.mark.parametrize("batchnorm", ["plain", "shared", "per-member"])
def test_networks_agree_with_the_loop(batchnorm: Literal["plain", "shared", "per-member"]) -> None:
    generator = torch.Generator().manual_seed(1)
    plain = resnet(num_classes=3, width=4)
    model = plain if batchnorm == "plain" else batch_ensemble(plain, 3, batchnorm=batchnorm)
    with torch.no_grad():
        for key, tensor in model.state_dict().items():
            if key.endswith("running_var"):
                tensor.copy_(3 * 10 ** -torch.randint(0, 9, tensor.shape, generator=generator).float())
            elif key.endswith("weight") and tensor.dim() == 1:
                tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.002)
    expected = slow_health(model)
    health = measure_health(model)
    assert (health.channels, health.below_eps, health.dead_scales) == (
        expected.channels,
        expected.below_eps,
        expected.dead_scales,
    )
    assert 0 < health.below_eps < health.channels
    assert 0 < health.dead_scales < health.channels
    assert health.spread_r == pytest.approx(expected.spread_r)
    assert health.spread_s == pytest.approx(expected.spread_s)


def test_resnext29_has_the_channels_of_the_documentation_and_begins_healthy() -> None:
    ensemble = resnext29(10, num_members=4, generator=torch.Generator().manual_seed(0))
    health = measure_health(ensemble)
    assert (health.channels, health.below_eps, health.dead_scales) == (12_608, 0, 0)
    assert health.spread_r == pytest.approx(0.5, abs=0.01)
    assert health.spread_s == pytest.approx(0.5, abs=0.01)


def test_measuring_changes_nothing() -> None:
    model = resnet(num_classes=3, width=4, num_members=2).train()
    before = {key: tensor.clone() for key, tensor in model.state_dict().items()}
    measure_health(model)
    assert model.training
    assert all(parameter.requires_grad and parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(before[key], tensor) for key, tensor in model.state_dict().items())


def test_everything_is_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading would empty a GPU's queue."""
    readings: list[int] = []
    original = Tensor.tolist

    def counted(tensor: Tensor) -> list[float]:
        readings.append(tensor.numel())
        return original(tensor)

    def refused(tensor: Tensor) -> float:
        raise AssertionError(f"a reading of its own: {tensor.shape}")

    model = resnet(num_classes=3, width=4, num_members=2)
    monkeypatch.setattr(Tensor, "tolist", counted)
    for name in ("item", "__int__", "__float__", "__bool__", "cpu", "numpy"):
        monkeypatch.setattr(Tensor, name, refused)
    measure_health(model)
    assert readings == [4]
