"""Which process this is, what it has of a batch, and who tells of an error."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.devices import choose_device
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.parallel.group import add_up, agreed, any_of, first_then_others, from_first, joined
from counterpoint.parallel.world import ALONE, AgreedError, ProcessLostError, World, is_told_by_another, this_world
from counterpoint.training.engines import EngineName, choose_engine
from counterpoint.training.preparing import check_batches, warn_of_draws
from counterpoint.training.step import seed_layers
from tests.heard import Heard

TORCHRUN = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "MASTER_ADDR": "here", "MASTER_PORT": "1"}
RESNEXT = Experiment("a", "cifar10")
CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_a_world_is_what_torchrun_says() -> None:
    assert this_world(TORCHRUN) == World(2, 4, 0)
    assert this_world(TORCHRUN | {"LOCAL_WORLD_SIZE": "2"}) == World(2, 4, 0, 2)
    assert this_world({}) == ALONE
    # Schedulers set some of the names too, and mean something else.
    assert this_world({"RANK": "2", "WORLD_SIZE": "4"}) == ALONE


@pytest.mark.parametrize("wrong", [{"RANK": "4"}, {"WORLD_SIZE": "0"}, {"LOCAL_RANK": "-1"}, {"RANK": "two"}])
def test_a_wrong_world_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(InputError, match="set by torchrun"):
        this_world(TORCHRUN | wrong)


@pytest.mark.parametrize(("count", "parts"), [(6, [2, 2, 2]), (7, [3, 2, 2]), (8, [3, 3, 2]), (2, [1, 1, 0])])
def test_shares_follow_each_other_and_are_as_even_as_can_be(count: int, parts: list[int]) -> None:
    worlds = [World(rank, 3) for rank in range(3)]
    shared = [list(range(count))[world.share(count)] for world in worlds]
    assert [len(part) for part in shared] == [world.count(count) for world in worlds] == parts
    assert [number for part in shared for number in part] == list(range(count))


def test_a_process_alone_has_nobody_to_ask() -> None:
    flags = torch.ones(2)
    with joined(ALONE), agreed(ALONE):
        add_up(ALONE, [flags])
    assert flags.tolist() == [1, 1]
    assert (any_of(ALONE, True), any_of(ALONE, False), from_first(ALONE, 3)) == (True, False, 3)
    assert first_then_others(ALONE, lambda: 4) == 4
    with pytest.raises(InputError, match=r"^as it is$"), agreed(ALONE):
        raise InputError("as it is")
    assert not torch.distributed.is_initialized()


def test_one_process_tells_of_an_error_that_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, third = (World(rank, 3) for rank in range(3))
    own, common, lost = InputError("mine"), AgreedError("ours"), ProcessLostError("gone")
    assert [is_told_by_another(own, world) for world in (ALONE, first, third)] == [False, False, True]
    monkeypatch.setattr("counterpoint.parallel.world._are_joined", lambda: True)
    assert [is_told_by_another(own, world) for world in (first, second, third)] == [False, False, False]
    assert [is_told_by_another(common, world) for world in (first, second, third)] == [False, True, True]
    assert [is_told_by_another(lost, world) for world in (first, second, third)] == [False, False, True]


@pytest.mark.parametrize(("batch_size", "images"), [(3, 9), (3, 3), (8, 11), (100, 3)])
def test_batches_that_reach_for_all_processes(batch_size: int, images: int) -> None:
    check_batches(replace(RESNEXT, batch_size=batch_size), images, World(0, 3))


@pytest.mark.parametrize(
    ("batch_size", "images", "problem"),
    [
        (2, 100, r"a batch has 2 images \(batch_size 2, 100 to train on\), and each of the 3 processes"),
        (100, 2, "a batch has 2 images"),
        (8, 10, r"the last batch of an epoch has 2 of the 10 images \(batch_size 8\)"),
    ],
)
def test_batches_with_fewer_images_than_processes_are_refused(batch_size: int, images: int, problem: str) -> None:
    experiment = replace(RESNEXT, batch_size=batch_size)
    with pytest.raises(InputError, match=problem):
        check_batches(experiment, images, World(0, 3))
    check_batches(experiment, images, ALONE)


def test_a_last_batch_that_is_never_reached_may_be_small() -> None:
    check_batches(replace(RESNEXT, batch_size=8, steps=1), 10, World(0, 3))


@pytest.mark.parametrize(
    ("name", "batch_size", "device", "chosen"),
    [
        ("auto", 128, CUDA, "compiled"),
        ("auto", 127, CUDA, "eager"),
        ("auto", 128, CPU, "eager"),
        ("compiled", 128, CPU, "compiled"),
        ("eager", 127, CUDA, "eager"),
    ],
)
def test_engines_for_two_processes(name: EngineName, batch_size: int, device: torch.device, chosen: EngineName) -> None:
    assert choose_engine(name, replace(RESNEXT, batch_size=batch_size), device, World(1, 2)) == chosen


def test_engines_that_several_processes_cannot_have() -> None:
    with pytest.raises(InputError, match="fast engine takes BatchNorm's statistics over one process's images"):
        choose_engine("fast", RESNEXT, CUDA, World(0, 2))
    with pytest.raises(InputError, match="batch_size that 2 processes divide evenly, and it is 127"):
        choose_engine("compiled", replace(RESNEXT, batch_size=127), CUDA, World(0, 2))


def test_each_process_has_a_gpu_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert [str(choose_device(name, World(3, 4, 1))) for name in ("auto", "cuda", "cpu")] == ["cuda:1", "cuda:1", "cpu"]
    with pytest.raises(InputError, match="'cuda:2' does not exist: torch sees 2 GPUs"):
        choose_device("auto", World(2, 4, 2))
    with pytest.raises(InputError, match="'cuda:0' cannot be shared by 4 processes"):
        choose_device("cuda:0", World(2, 4, 0))


def test_layers_of_others_draw_differently_in_each_process() -> None:
    experiment = replace(RESNEXT, model="timm/resnet18")
    with torch.random.fork_rng([]):
        seed_layers(experiment, 5, 7)
        alone = torch.rand(4)
        drawn = []
        for rank in range(3):
            seed_layers(experiment, 5, 7, rank)
            drawn.append(torch.rand(4))
    assert torch.equal(drawn[0], alone), "the first draws what a process alone draws"
    assert not torch.equal(drawn[0], drawn[1])
    assert not torch.equal(drawn[1], drawn[2])


@pytest.mark.parametrize(
    ("layer", "model", "world", "warned"),
    [
        (nn.Dropout(0.5), "timm/resnet18", World(0, 2), True),
        (nn.Dropout(0.0), "timm/resnet18", World(0, 2), False),
        (nn.Dropout(0.5), "timm/resnet18", ALONE, False),
        (nn.Dropout(0.5), "resnext29", World(0, 2), False),
        (nn.ReLU(), "timm/resnet18", World(0, 2), False),
    ],
)
def test_draws_that_depend_on_the_number_of_processes_are_told(
    layer: nn.Module, model: str, world: World, warned: bool
) -> None:
    heard = Heard()
    warn_of_draws(Ensemble(nn.Sequential(layer)), replace(RESNEXT, model=model), world, heard)
    assert any("layers that draw" in text for text in heard.warnings) == warned
