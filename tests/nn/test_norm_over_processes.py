"""What can be seen of BatchNorm over several processes in one; tests/parallel/test_several.py has the rest."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from counterpoint.nn import norm_over_processes, resnet
from counterpoint.nn.norm_over_processes import normalise_over_processes, statistics_over_processes
from counterpoint.parallel.world import World

ONE_OF_ONE = World(0, 1)


@pytest.fixture(autouse=True)
def nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum over one process is what it has."""
    monkeypatch.setattr(norm_over_processes, "all_reduce", lambda _: None)


def draws() -> Iterator[Tensor]:
    generator = torch.Generator().manual_seed(0)
    while True:
        yield torch.randn(64, 2, 8, 8, generator=generator)


def test_a_variance_far_from_0_keeps_its_digits() -> None:
    """In float32, E[x²] − μ² of values around 1000 would be off by more than a hundredth."""
    x = 1000 + next(draws())
    _, var_C, _ = statistics_over_processes(x, 0, 1)
    exact_C = x.double().var((0, 2, 3), correction=0)
    torch.testing.assert_close(var_C.double(), exact_C, rtol=1e-5, atol=0)
    one_pass_C = x.square().mean((0, 2, 3)) - x.mean((0, 2, 3)).square()
    assert (one_pass_C / exact_C - 1).abs().max() > 0.01


def test_bf16_is_normalised_in_float32() -> None:
    x = (8 + next(draws())).bfloat16()
    norm, ours = nn.BatchNorm2d(2), nn.BatchNorm2d(2)
    normalise_over_processes(ours, ONE_OF_ONE)
    expected, found = norm(x.float()), ours(x)
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found.float(), expected, rtol=2**-8, atol=2**-8)
    assert norm.running_var is not None
    assert ours.running_var is not None
    torch.testing.assert_close(ours.running_var, norm.running_var)


def test_names_and_tensors_stay_and_a_second_time_changes_nothing() -> None:
    network = resnet(3, num_members=2, width=2, batchnorm="per-member")
    before = {name: tensor.data_ptr() for name, tensor in network.state_dict().items()}
    normalise_over_processes(network, ONE_OF_ONE)
    classes = [type(module) for module in network.modules()]
    normalise_over_processes(network, ONE_OF_ONE)
    assert [type(module) for module in network.modules()] == classes
    assert {name: tensor.data_ptr() for name, tensor in network.state_dict().items()} == before


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")  # which torch.compile does
def test_torch_compile_takes_it_in_one_graph() -> None:
    network = nn.Sequential(nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2), nn.ReLU())
    normalise_over_processes(network, ONE_OF_ONE)
    explained = torch._dynamo.explain(network)(next(draws()))
    assert (explained.graph_count, explained.graph_break_count) == (1, 0)
