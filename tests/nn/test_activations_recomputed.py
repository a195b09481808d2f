"""Blocks that are computed again in the backward pass: the same bits, and less memory."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from counterpoint.config import Experiment
from counterpoint.data import parts_of
from counterpoint.errors import InputError
from counterpoint.nn import resnet, vit
from counterpoint.nn.activations import recompute_blocks
from counterpoint.training.batches import epoch_batches
from counterpoint.training.engines import choose_engine, make_engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState
from tests.small import TINY, noise_data

SMALL = replace(TINY, width=2, batch_size=6)


def states(experiment: Experiment, *, less_memory: bool) -> list[dict[str, Tensor]]:
    """The state after each of three steps."""
    images = parts_of(noise_data(16, 3), experiment).train
    model = build_model(experiment, 3, 3, seed=0).train()
    engine = make_engine(TrainState.before_first_step(model, experiment), experiment, "eager", less_memory=less_memory)
    found = []
    for batch in epoch_batches(images, experiment, seed=0, epoch=0, num_blocks=model.num_blocks):
        update(engine, batch, 3)
        found.append({name: tensor.detach().clone() for name, tensor in engine.state.tensors().items()})
    return found


@pytest.mark.parametrize(
    "experiment",
    [SMALL, replace(SMALL, batchnorm="per-member"), replace(SMALL, ensemble="deep")],
    ids=["shared", "per-member", "deep"],
)
def test_steps_have_the_same_bits(experiment: Experiment) -> None:
    """With adversarial views and stochastic depth. Running statistics are changed once in a step."""
    for ours, plain in zip(states(experiment, less_memory=True), states(experiment, less_memory=False), strict=True):
        assert ours.keys() == plain.keys()
        assert all(torch.equal(ours[name], plain[name]) for name in plain)


class Block(nn.Module):
    """A block with dropout, which must draw the same mask twice."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.dropout = nn.Linear(8, 8), nn.Dropout(0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.dropout(torch.tanh(self.linear(x)))


def gradients(network: nn.Module, x: Tensor) -> list[Tensor]:
    with torch.random.fork_rng([]):
        torch.manual_seed(0)
        return list(torch.autograd.grad(network(x).square().sum(), list(network.parameters())))


def test_dropout_draws_alike_and_fewer_activations_are_kept() -> None:
    network, x = nn.Sequential(*(Block() for _ in range(6))), torch.randn(3, 8, generator=torch.Generator())
    kept: list[Tensor] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor)
        return tensor

    counts, found = [], []
    for less_memory in (False, True):
        if less_memory:
            recompute_blocks(network)
        kept.clear()
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            network(x)
        counts.append(len(kept))
        found.append(gradients(network, x))
    assert counts[1] < counts[0]
    assert all(torch.equal(ours, plain) for ours, plain in zip(*found, strict=True))


@pytest.mark.parametrize(
    ("network", "blocks"), [(resnet(3, width=2), 3), (vit(3, depth=2, width=8, heads=2), 4)], ids=["resnet", "vit"]
)
def test_blocks_are_found(network: nn.Module, blocks: int) -> None:
    names = list(network.state_dict())
    assert recompute_blocks(network) == blocks
    assert list(network.state_dict()) == names


class Counting(nn.Module):
    """A block that changes itself whenever it is run."""

    passes: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.passes += 1
        return torch.tanh(self.linear(x))


def test_a_block_that_changes_itself_is_refused() -> None:
    network = nn.Sequential(Counting(), Counting())
    assert recompute_blocks(network) == 2
    with pytest.raises(InputError, match="Counting changes passes in each pass"):
        network(torch.ones(1, 2)).sum().backward()


def test_only_the_eager_engine_needs_less_memory() -> None:
    for device in (torch.device("cpu"), torch.device("cuda")):
        assert choose_engine("auto", SMALL, device, less_memory=True) == "eager"
    with pytest.raises(InputError, match="the compiled engine keeps all activations"):
        choose_engine("compiled", SMALL, torch.device("cuda"), less_memory=True)


def test_a_network_without_blocks_is_refused() -> None:
    model = build_model(SMALL, 3, 3, seed=0)
    model.network = nn.Linear(2, 2)
    state = TrainState.before_first_step(model, SMALL)
    with pytest.raises(InputError, match="resnet has no list of blocks to compute again"):
        make_engine(state, SMALL, "eager", less_memory=True)
