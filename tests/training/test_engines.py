"""Which engine is chosen, and what can be seen of the engines without a GPU; test_cuda.py has the rest."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import ClassVar

import pytest
import torch

from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data import parts_of
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.training import engines
from counterpoint.training.batches import Batch, epoch_batches
from counterpoint.training.engines import EngineName, choose_engine, make_engine, make_forward
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState, take_step
from tests.small import TINY, noise_data

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
EXPERIMENT = replace(TINY, width=2, batch_size=4)
RESNEXT = Experiment("a", "cifar10")
RESNET = replace(RESNEXT, model="resnet")
DEEP = replace(RESNEXT, ensemble="deep")


def tiny_batches(experiment: Experiment = EXPERIMENT) -> list[Batch]:
    """Two batches: of four images, and of the two that are left."""
    part = parts_of(noise_data(6, 3), experiment).train
    return list(epoch_batches(part, experiment, seed=0, epoch=0, num_blocks=3))


@pytest.mark.parametrize(
    ("experiment", "device", "triton", "chosen"),
    [
        (RESNEXT, CUDA, True, "fast"),
        (RESNEXT, CUDA, False, "compiled"),
        (RESNET, CUDA, True, "compiled"),
        (DEEP, CUDA, True, "compiled"),
        (RESNEXT, CPU, True, "eager"),
        (RESNET, CPU, False, "eager"),
    ],
)
def test_auto_is_the_fastest_that_can_be_had(
    monkeypatch: pytest.MonkeyPatch, experiment: Experiment, device: torch.device, triton: bool, chosen: str
) -> None:
    monkeypatch.setitem(sys.modules, "triton", ModuleType("triton") if triton else None)
    assert choose_engine("auto", experiment, device) == chosen


@pytest.mark.parametrize("name", ["eager", "compiled"])
@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_an_engine_that_any_network_has_is_taken_as_named(name: EngineName, device: torch.device) -> None:
    assert choose_engine(name, RESNET, device) == name


def test_the_fast_engine_is_taken_as_named_where_it_can_be_had() -> None:
    assert choose_engine("fast", RESNEXT, CUDA) == "fast"


@pytest.mark.parametrize(("experiment", "device"), [(RESNET, CUDA), (RESNEXT, CPU)])
def test_the_fast_engine_is_refused_where_it_cannot(experiment: Experiment, device: torch.device) -> None:
    here = f"this is a {experiment.model} on {device}; use the engine auto"
    with pytest.raises(InputError, match=f"needs a GPU and a resnext29, and {here}"):
        choose_engine("fast", experiment, device)


def test_the_fast_engine_is_refused_for_a_deep_ensemble() -> None:
    with pytest.raises(InputError, match="no kernels for a deep ensemble; use the engine auto, compiled or eager"):
        choose_engine("fast", DEEP, CUDA)


def test_the_fast_engine_is_refused_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(InputError, match=r"the fast engine needs Triton, .* use the engine compiled"):
        choose_engine("fast", RESNEXT, CUDA)


def start() -> TrainState:
    model = build_model(EXPERIMENT, 3, 3, seed=0).train()
    return TrainState.before_first_step(model, EXPERIMENT)


def test_an_engine_on_a_cpu_takes_the_step() -> None:
    by_engine, directly = start(), start()
    engine = make_engine(by_engine, EXPERIMENT, "eager")
    for batch in tiny_batches():
        engine.step(batch)
        take_step(directly, batch, EXPERIMENT, directly.model)
    expected = directly.tensors()
    assert by_engine.tensors().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in by_engine.tensors().items())
    assert not torch.equal(expected["model.network.stem.0.weight"], start().tensors()["model.network.stem.0.weight"])


def test_forward_on_a_cpu_is_the_network_in_its_own_precision() -> None:
    model, batch = start().model.double(), tiny_batches()[0]
    views_MBCHW = batch.views.views_MBCHW.double()
    logits_MBK = make_forward(model, EXPERIMENT.batch_size, "eager", CPU)(views_MBCHW, batch.views.keep)
    assert logits_MBK.dtype == torch.float64
    assert torch.equal(logits_MBK, model(views_MBCHW, batch.views.keep))


@pytest.mark.parametrize(
    "policy", [MemberPolicy(), MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))], ids=["plain", "consistency"]
)
def test_whole_batches_are_compiled_and_the_last_of_an_epoch_is_not(
    monkeypatch: pytest.MonkeyPatch, policy: MemberPolicy
) -> None:
    state, experiment = start(), replace(EXPERIMENT, policy=policy)
    compiled: list[int] = []

    def compile(model: Ensemble, **_: object) -> Callable[..., torch.Tensor]:
        def run(views_MBCHW: torch.Tensor, keep: torch.Tensor | None) -> torch.Tensor:
            compiled.append(views_MBCHW.shape[1])
            return model(views_MBCHW, keep)

        return run

    monkeypatch.setattr(torch, "compile", compile)
    engine = make_engine(state, experiment, "compiled")
    for batch in tiny_batches(experiment):
        engine.step(batch)
    assert compiled == [4 * policy.views_per_step]


class _Stream:
    def wait_stream(self, _: object) -> None:
        """Nothing to wait for."""


class _Graph:
    """Stands for a CUDA graph, and counts its replays."""

    made: ClassVar[list["_Graph"]] = []

    def __init__(self) -> None:
        self.replays = 0
        self.made.append(self)

    def replay(self) -> None:
        self.replays += 1

    def pool(self) -> str:
        return "pool"


@dataclass
class Recording:
    """What a recorded engine did without a GPU."""

    batches: list[Batch] = field(default_factory=list)
    """What each computed step was given, in the memory where it found it."""
    copies: list[Batch] = field(default_factory=list)
    """The values there at that time."""
    pools: list[object] = field(default_factory=list)
    """Of the graphs, in the order of their recording."""


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    """Nothing is computed: steps and graphs are only noted."""
    recording = Recording()

    def graph(_: _Graph, *, pool: object, **__: object) -> AbstractContextManager[None]:
        recording.pools.append(pool)
        return nullcontext()

    def note(_: TrainState, batch: Batch, *__: object) -> None:
        recording.batches.append(batch)
        recording.copies.append(batch.map(torch.clone))

    monkeypatch.setattr(_Graph, "made", [])
    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", _Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    monkeypatch.setattr(engines, "take_step", note)
    return recording


@pytest.mark.parametrize(
    "policy",
    [EXPERIMENT.policy, MemberPolicy(), MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))],
    ids=["adversarial", "plain", "consistency"],
)
def test_a_recorded_step_has_all_inputs_in_memory_of_its_own(recording: Recording, policy: MemberPolicy) -> None:
    experiment = replace(EXPERIMENT, policy=policy, batch_size=3)
    given, state = tiny_batches(experiment), start()
    engine = engines.RecordedEngine(state, experiment, state.model)
    for batch in given:
        engine.step(batch)
    for found, expected in zip(recording.copies, given, strict=True):
        assert_equal(found, expected)
    places = [{t.data_ptr() for t in batch.tensors} for batch in recording.batches]
    assert places[0] == places[1]
    assert all(places[0].isdisjoint(t.data_ptr() for t in batch.tensors) for batch in given)
    assert all(tensor.is_contiguous() for tensor in recording.batches[0].tensors)


def test_steps_of_one_size_are_recorded_where_the_first_ones_ran(recording: Recording) -> None:
    """With strides of their own torch.compile would have to compile again in the middle of the recording."""
    state = start()
    engine = engines.RecordedEngine(state, EXPERIMENT, state.model)
    for _ in range(6):
        for batch in tiny_batches():
            engine.step(batch)
    for size in (4, 2):
        places = [
            [(t.data_ptr(), t.stride()) for t in batch.tensors]
            for batch in recording.batches
            if len(batch.labels_B) == size
        ]
        assert len(places) == 4, "three before the recording, and the recording"
        assert all(place == places[0] for place in places)
    assert [graph.replays for graph in _Graph.made] == [3, 3]
    assert recording.pools == [None, "pool"]


def assert_equal(batch: Batch, expected: Batch) -> None:
    """Field by field, so that a new one cannot be forgotten."""
    assert torch.equal(batch.numbers_B, expected.numbers_B)
    assert torch.equal(batch.labels_B, expected.labels_B)
    for name in Views.__dataclass_fields__:
        found, wanted = getattr(batch.views, name), getattr(expected.views, name)
        assert torch.equal(found, wanted) if isinstance(wanted, torch.Tensor) else found == wanted, name
