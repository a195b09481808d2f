"""Whether a step fits into a CPU's memory, by few images: beside a twin that keeps what the whole batch needs."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble
from counterpoint.own_images import OwnImages
from counterpoint.parallel.world import World
from counterpoint.policy import AugMix, MemberPolicy, StochasticDepth
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.training import memory
from counterpoint.training.loop import Options, train
from counterpoint.training.memory import _HELD_BESIDES, Trial, check_memory
from counterpoint.training.network import build_model
from tests.heard import Heard
from tests.nn.test_activations_kept import held_by
from tests.small import TINY, noise_data

SHAPE, BATCH = (3, 16, 16), 24
MEMBERS = Experiment("small", "digits", model="resnet", width=4, num_members=3, batch_size=BATCH)
PHOTOS = replace(MEMBERS, dataset="images", images=OwnImages(size=160))
KEYS = ("batch_size", "learning_rate", "images.size")
check_step = partial(check_memory, device=torch.device("cpu"), engine="eager")
FREE = "counterpoint.training.memory.free_memory"


class ScaledWeights(nn.Module):
    """Keeps tensors that have the size of its weight, whatever the batch."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(768, 64))
        self.last = nn.Linear(64, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.last(torch.tanh(x.flatten(1) @ torch.sin(torch.exp(self.weight))))


def needed(
    network: Ensemble, experiment: Experiment, *, less_memory: bool = False, member_by_member: bool = False
) -> int:
    """The least free memory with which `check_step` lets the whole batch through."""
    batch = experiment.batch_size
    need = Trial(network, experiment, SHAPE, member_by_member).need(batch, less_memory, free=0)
    assert need is not None
    return math.ceil(need.bytes(batch, less_memory))


@pytest.mark.parametrize(
    "experiment",
    [
        MEMBERS,
        replace(MEMBERS, num_members=None, momentum=0.0),
        replace(MEMBERS, batchnorm="per-member"),
        replace(MEMBERS, ensemble="deep"),
        replace(MEMBERS, policy=MemberPolicy(augmix=AugMix((1.0,), "constant", jsd=1.0))),
        replace(MEMBERS, policy=MemberPolicy(stochastic_depth=StochasticDepth((0.5,), "constant"))),
    ],
    ids=["members", "single", "norm per member", "deep", "three views", "stochastic depth"],
)
def test_few_images_tell_what_the_whole_batch_keeps(experiment: Experiment) -> None:
    network = build_model(experiment, 3, 3, seed=0).train()
    rows = BATCH * experiment.policy.views_per_step
    views_MBCHW = torch.zeros(experiment.members, rows, *SHAPE)
    drops = experiment.policy.stochastic_depth is not None
    keep = [torch.ones(network.num_blocks, experiment.members * rows)] if drops else []
    kept = held_by(network, views_MBCHW, *keep)
    updates = (2 if experiment.momentum else 1) * sum(parameter.nbytes for parameter in network.parameters())
    slow = sum(kept.values()) + _HELD_BESIDES * max(kept.values()) + updates + 4 * views_MBCHW.nbytes
    assert needed(network, experiment) == pytest.approx(slow, rel=1e-3)


def test_what_does_not_grow_with_the_batch_counts_once() -> None:
    network, experiment = Ensemble(ScaledWeights()), replace(MEMBERS, num_members=None)
    kept = held_by(network, views := torch.zeros(1, BATCH, *SHAPE))
    largest = max(kept.values())
    assert largest == network.network.weight.nbytes
    updates = 2 * sum(parameter.nbytes for parameter in network.parameters())
    slow = sum(kept.values()) + _HELD_BESIDES * largest + updates + 4 * views.nbytes
    assert needed(network, experiment) == pytest.approx(slow, rel=1e-3)


def test_options_that_save_memory_need_less() -> None:
    experiment = replace(MEMBERS, batchnorm="per-member", batch_size=200)
    network = build_model(experiment, 3, 3, seed=0)
    plain = needed(network, experiment)
    less = needed(network, experiment, less_memory=True)
    one = needed(network, experiment, member_by_member=True)
    both = needed(network, experiment, less_memory=True, member_by_member=True)
    assert both < min(less, one)
    assert less < plain
    assert one < 0.5 * plain


def test_our_networks_save_memory_by_themselves_and_train_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, experiment, heard = noise_data(36, 4), replace(TINY, epochs=1), Heard()
    assert train(experiment, tmp_path / "plain", data, options=Options(device="cpu"))
    need = Trial(build_model(experiment, 4, 3, seed=0), experiment, (3, 8, 8), False).need(8, False, free=0)
    assert need is not None
    monkeypatch.setattr(FREE, lambda: math.ceil(need.bytes(8, less_memory=True)))
    assert train(experiment, tmp_path / "saved", data, options=Options(device="cpu"), watcher=heard)
    (note,) = heard.notes
    assert "a step needs about 0.0 GiB of memory, and 0.0 GiB are free; so activations are computed again" in note
    plain, saved = latest_checkpoint(tmp_path / "plain"), latest_checkpoint(tmp_path / "saved")
    assert plain is not None
    assert saved is not None
    assert all(torch.equal(tensor, saved.tensors[name]) for name, tensor in plain.tensors.items())


@pytest.mark.parametrize(("optimiser", "power"), [("sgd", 1), ("adamw", 0.5)])
def test_the_error_proposes_what_fits(
    monkeypatch: pytest.MonkeyPatch, optimiser: Literal["sgd", "adamw"], power: float
) -> None:
    experiment = replace(PHOTOS, optimiser=optimiser)
    network, shape = build_model(experiment, 3, 3, seed=0, size=(160, 160)), (3, 160, 160)
    monkeypatch.setattr(FREE, lambda: 400 << 20)
    with pytest.raises(InputError) as raised:
        check_step(network, experiment, shape, 1_000)
    said = str(raised.value)
    assert said.startswith("a step needs about 0.7 GiB of memory even with less_memory, and 0.4 GiB are free: it needs")
    assert "close other programs, or train a new run with batch_size=" in said
    assert said.endswith("fewer num_members (now 3) or a smaller network")
    batch, rate, side = (float(said.partition(f"{key}=")[2].split()[0].rstrip(",")) for key in KEYS)
    assert rate == pytest.approx(0.1 * (batch / BATCH) ** power, rel=0.05)
    assert check_step(network, replace(experiment, batch_size=int(batch)), shape, 1_000)
    with pytest.raises(InputError):
        check_step(network, replace(experiment, batch_size=int(batch) + 1), shape, 1_000)
    check_step(network, experiment, (3, int(side), int(side)), 1_000)
    with pytest.raises(InputError):
        check_step(network, experiment, (3, int(side) + 32, int(side) + 32), 1_000)


def test_another_network_is_told_of_less_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = replace(MEMBERS, model="somewhere:make")
    network = build_model(MEMBERS, 3, 3, seed=0)
    least = needed(network, experiment, less_memory=True)
    monkeypatch.setattr(FREE, lambda: least)
    with pytest.raises(
        InputError, match=r"of memory, and .* or set less_memory \(--less-memory\), which needs .* batch_size=\d+ "
    ):
        check_step(network, experiment, SHAPE, 1_000)
    assert check_step(network, experiment, SHAPE, 1_000, less_memory=True)
    assert not is_own(experiment.model)


def test_processes_share_the_memory_of_their_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four processes on two machines each has a quarter of the batch, and half of its machine's memory."""
    network = build_model(MEMBERS, 3, 3, seed=0)
    quarter = needed(network, replace(MEMBERS, batch_size=BATCH // 4))
    world = World(3, 4, 1, 2)
    monkeypatch.setattr(FREE, lambda: 2 * quarter)
    assert not check_step(network, MEMBERS, SHAPE, 1_000, world=world)
    monkeypatch.setattr(FREE, lambda: 2 * quarter - 2)
    assert check_step(network, MEMBERS, SHAPE, 1_000, world=world)
    monkeypatch.setattr(FREE, lambda: 2)
    with pytest.raises(InputError, match="GiB are free for each of the 2 processes here"):
        check_step(network, MEMBERS, SHAPE, 1_000, world=world)


class Failing(nn.Module):
    def __init__(self, fail: Callable[[], None]) -> None:
        super().__init__()
        self.linear = nn.Linear(768, 3)
        self.fail = fail

    def forward(self, x: Tensor) -> Tensor:
        self.fail()
        return self.linear(x.flatten(1))


def refuse() -> None:
    raise ValueError("not with so few images")


def test_a_network_that_cannot_be_tried_is_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FREE, lambda: 0)
    assert not check_step(Ensemble(Failing(refuse)), replace(MEMBERS, num_members=None), SHAPE, 9)


def test_what_cannot_save_memory_is_refused_before_it_is_tried() -> None:
    with pytest.raises(InputError, match="resnet has no list of blocks to compute again; leave less_memory"):
        check_step(Ensemble(Failing(refuse)), MEMBERS, SHAPE, 9, less_memory=True)
    shared = build_model(MEMBERS, 3, 3, seed=0)  # one member after another needs a norm per member
    with pytest.raises(InputError, match="BatchNorm is shared"):
        check_step(shared, MEMBERS, SHAPE, 9, member_by_member=True)


def test_nothing_is_drawn_and_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []
    norm = nn.Sequential(nn.BatchNorm2d(3), nn.Dropout(0.5), Failing(lambda: calls.append(None)))
    network = Ensemble(norm).eval()
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    state = torch.get_rng_state()
    monkeypatch.setattr(FREE, lambda: 0)
    with pytest.raises(InputError):
        check_step(network, replace(MEMBERS, num_members=None), SHAPE, 9)
    assert len(calls) == 2
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(tensor, before[name]) for name, tensor in network.state_dict().items())
    assert not network.training
    assert all(parameter.grad is None for parameter in network.parameters())


def test_a_step_that_surely_fits_is_tried_once() -> None:
    calls: list[None] = []
    network = Ensemble(Failing(lambda: calls.append(None)))
    assert not check_step(network, replace(MEMBERS, num_members=None), SHAPE, 9)
    assert len(calls) == 1


def test_training_is_refused_before_a_run_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    with pytest.raises(InputError, match="a step needs about"):
        train(TINY, tmp_path / "run", noise_data(36, 4), options=Options(device="cpu"))
    assert not (tmp_path / "run" / "run.json").exists()
