"""Which engine is chosen, and what can be seen of the engines without a GPU; tests/test_cuda.py has the rest."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.data.split import Part
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.training import engines
from counterpoint.training.engines import EngineName, check_engine, choose_engine, make_engine, make_forward
from counterpoint.training.network import build_model
from counterpoint.training.step import Batch, TrainState, epoch_batches, take_step

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
EXPERIMENT = Experiment(
    "tiny",
    "digits",
    train_on="all",
    model="resnet",
    width=2,
    num_members=2,
    batch_size=4,
    policy=MemberPolicy(
        augmix=AugMix((1.0, 3.0)),
        adversarial=Adversarial((0.05, 0.1)),
        stochastic_depth=StochasticDepth((0.1, 0.2)),
    ),
)
RESNEXT = Experiment("a", "cifar10")
RESNET = replace(RESNEXT, model="resnet")


def tiny_batches(experiment: Experiment = EXPERIMENT) -> list[Batch]:
    """Two batches: of four images, and of the two that are left."""
    numbers = torch.arange(6)
    pixels = Stream(0, "tiny").integers(numbers, 3 * 8 * 8, 256).view(6, 3, 8, 8).to(torch.uint8)
    part = Part(ImageSet(pixels, numbers % 3, ("a", "b", "c")), numbers)
    return list(epoch_batches(part, experiment, seed=0, epoch=0, num_blocks=3))


@pytest.mark.parametrize("name", ["auto", "fast", "compiled", "eager"])
def test_an_engines_name_is_itself(name: str) -> None:
    assert check_engine(name) == name


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown engine 'quick' \(known: auto, fast, compiled, eager\)"):
        check_engine("quick")


@pytest.mark.parametrize(
    ("experiment", "device", "triton", "chosen"),
    [
        (RESNEXT, CUDA, True, "fast"),
        (RESNEXT, CUDA, False, "compiled"),
        (RESNET, CUDA, True, "compiled"),
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
    here = f"this is a {experiment.model} on {device}; use --engine auto"
    with pytest.raises(InputError, match=f"needs a GPU and a resnext29, and {here}"):
        choose_engine("fast", experiment, device)


def test_the_fast_engine_is_refused_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(InputError, match=r"the fast engine needs Triton, .* use --engine compiled"):
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


@pytest.mark.parametrize(
    "policy",
    [EXPERIMENT.policy, MemberPolicy(), MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))],
    ids=["adversarial", "plain", "consistency"],
)
def test_a_recorded_step_has_all_inputs_in_memory_of_its_own(policy: MemberPolicy) -> None:
    experiment = replace(EXPERIMENT, policy=policy, batch_size=3)
    first, second = tiny_batches(experiment)
    memory = engines._StepMemory.of(first)
    assert_equal(memory.batch, first)
    kept, given = ({t.data_ptr() for t in batch.tensors} for batch in (memory.batch, first))
    assert kept.isdisjoint(given)
    assert all(tensor.is_contiguous() for tensor in memory.batch.tensors)
    memory.take(second)
    assert_equal(memory.batch, second)
    assert {t.data_ptr() for t in memory.batch.tensors} == kept


class _Stream:
    def wait_stream(self, _: object) -> None:
        """Nothing to wait for."""


class _Graph:
    """Stands for a CUDA graph, and counts its replays."""

    def __init__(self) -> None:
        self.replays = 0

    def replay(self) -> None:
        self.replays += 1

    def pool(self) -> str:
        return "pool"


def test_steps_of_one_size_are_recorded_where_the_first_ones_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """With strides of their own torch.compile would have to compile again in the middle of the recording."""
    pools: list[object] = []

    def graph(_: _Graph, *, pool: object, **__: object) -> AbstractContextManager[None]:
        pools.append(pool)
        return nullcontext()

    monkeypatch.setattr(torch.cuda, "Stream", _Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", _Stream)
    monkeypatch.setattr(torch.cuda, "stream", lambda _: nullcontext())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", _Graph)
    monkeypatch.setattr(torch.cuda, "graph", graph)
    seen: dict[int, list[list[tuple[int, tuple[int, ...]]]]] = {4: [], 2: []}

    def forget(_: TrainState, batch: Batch, *__: object) -> None:
        seen[len(batch.labels_B)].append([(t.data_ptr(), t.stride()) for t in batch.tensors])

    monkeypatch.setattr(engines, "take_step", forget)
    state = start()
    recorded = engines.RecordedEngine(state, EXPERIMENT, state.model)
    for _ in range(6):
        for batch in tiny_batches():
            recorded.step(batch)
    for calls in seen.values():
        assert len(calls) == engines._STEPS_BEFORE_RECORDING + 1, "those before the recording, and the recording"
        assert all(call == calls[0] for call in calls)
    assert [memory.graph.replays for memory in recorded._memories.values()] == [3, 3]  # type: ignore[union-attr]
    assert pools == [None, "pool"]


def assert_equal(batch: Batch, expected: Batch) -> None:
    """Field by field, so that a new one cannot be forgotten."""
    assert torch.equal(batch.numbers_B, expected.numbers_B)
    assert torch.equal(batch.labels_B, expected.labels_B)
    for name in Views.__dataclass_fields__:
        own, other = getattr(batch.views, name), getattr(expected.views, name)
        assert own is other is None or torch.equal(own, other), name
