"""The whole training pass against the reference network in float64: logits, all gradients and the statistics.

In fp32 on a GPU too; its bf16 is compared in tests/test_cuda.py.
"""

from collections.abc import Callable, Sequence
from copy import deepcopy

import pytest
import torch
from torch import Tensor

from counterpoint.nn import Ensemble, resnext29
from counterpoint.nn.blocks import ResidualNetwork, conv_norm, finish
from counterpoint.nn.conversion import BatchNorm
from counterpoint.nn.fast import fast_forward
from counterpoint.nn.norm import left_untouched
from counterpoint.nn.resnext import Bottleneck, ResNeXt29

Draw = Callable[..., Tensor]
Check = Callable[[Tensor, Tensor], None]
CheckAll = Callable[[Sequence[Tensor], Sequence[Tensor], Sequence[Tensor], Sequence[Tensor]], None]


@pytest.fixture
def dtype() -> torch.dtype:
    return torch.float32


class TinyResNeXt(ResNeXt29):
    """One block of each kind: a shortcut with stride 1, none, and one with stride 2."""

    def __init__(self) -> None:
        blocks = [Bottleneck(20, 32, 40, 1, 2), Bottleneck(40, 32, 40, 1, 2), Bottleneck(40, 32, 48, 2, 2)]
        ResidualNetwork.__init__(self, conv_norm(3, 20, 3), blocks, 48, num_classes=5)


def ensemble(network: torch.nn.Module, device: torch.device) -> Ensemble:
    model = network if isinstance(network, Ensemble) else Ensemble(network)
    return model.to(device, memory_format=torch.channels_last).train()  # type: ignore[call-overload]


def tiny_ensemble(members: int | None, batchnorm: BatchNorm, device: torch.device) -> Ensemble:
    generator = torch.Generator().manual_seed(1)
    network = finish(TinyResNeXt(), members, batchnorm=batchnorm, init_std=0.5, generator=generator)
    return ensemble(network, device)


def check_network(check: Check, check_all: CheckAll, model: Ensemble, views_MBCHW: Tensor, keep: Tensor | None) -> None:
    twin, exact_views_MBCHW = deepcopy(model).double(), views_MBCHW.detach().double().requires_grad_()
    found_MBK = fast_forward(model, views_MBCHW.requires_grad_(), keep, torch.float32)
    exact_MBK = twin(exact_views_MBCHW, keep)
    assert found_MBK.dtype == torch.float32
    leaves, exact_leaves = [views_MBCHW, *model.parameters()], [exact_views_MBCHW, *twin.parameters()]
    check_all([found_MBK], leaves, [exact_MBK], exact_leaves)
    for ours, theirs in zip(model.buffers(), twin.buffers(), strict=True):
        check(ours, theirs)


@pytest.mark.parametrize(
    ("members", "batchnorm"),
    [(None, "shared"), (2, "shared"), (2, "per-member")],
    ids=["single", "shared", "per-member"],
)
@pytest.mark.parametrize("drops", [False, True], ids=["keeps all", "drops some"])
def test_a_network_of_every_kind_of_block(
    draw: Draw, check: Check, check_all: CheckAll, members: int | None, batchnorm: BatchNorm, drops: bool
) -> None:
    views_MBCHW = draw(members or 1, 3, 3, 4, 6)
    model = tiny_ensemble(members, batchnorm, views_MBCHW.device)
    rows = 3 * (members or 1)
    keep = draw(model.num_blocks, rows).gt(-0.5) / 0.75 if drops else None
    check_network(check, check_all, model, views_MBCHW, keep)


def test_the_logits_of_all_of_resnext29(draw: Draw) -> None:
    """Looser: the last BatchNorms see four values per channel here, and divide by what little these differ."""
    views_MBCHW = draw(1, 4, 3, 4, 4)
    network = resnext29(5, cardinality=2, base_width=8, generator=torch.Generator().manual_seed(2))
    model = ensemble(network, views_MBCHW.device)
    with torch.no_grad():
        exact_MBK = deepcopy(model).double()(views_MBCHW.double())
        found_MBK = fast_forward(model, views_MBCHW, None, torch.float32)
    assert (found_MBK - exact_MBK).abs().max() <= 1e-3 * exact_MBK.abs().max()


@pytest.mark.parametrize("batchnorm", ["shared", "per-member"])
def test_the_gradient_of_the_input_alone(draw: Draw, check_all: CheckAll, batchnorm: BatchNorm) -> None:
    """What the adversarial perturbation needs: nothing else changes."""
    views_MBCHW = draw(2, 3, 3, 4, 4).requires_grad_()
    model = tiny_ensemble(2, batchnorm, views_MBCHW.device)
    twin, exact_views_MBCHW = deepcopy(model).double(), views_MBCHW.detach().double().requires_grad_()
    before = deepcopy(model.state_dict())
    with left_untouched(model):
        found_MBK = fast_forward(model, views_MBCHW, None, torch.float32)
        check_all([found_MBK], [views_MBCHW], [twin(exact_views_MBCHW)], [exact_views_MBCHW])
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_bf16_activations_are_near(draw: Draw) -> None:
    views_MBCHW = draw(2, 3, 3, 4, 4)
    model = tiny_ensemble(2, "shared", views_MBCHW.device)
    found_MBK = fast_forward(model, views_MBCHW, None)
    exact_MBK = deepcopy(model).double()(views_MBCHW.double())
    assert found_MBK.dtype == torch.float32
    assert 1e-5 < (found_MBK - exact_MBK).norm() / exact_MBK.norm() < 5e-2
