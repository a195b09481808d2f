"""Which path is chosen, and what can be seen of the paths without a GPU; tests/test_cuda.py has the rest."""

import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType

import pytest
import torch

from counterpoint import paths
from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.errors import InputError
from counterpoint.models import build_model
from counterpoint.nn import Ensemble
from counterpoint.optim import make_optimiser
from counterpoint.paths import PathName, check_path, choose_path, make_forward, make_learner
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.steps import Part, Step, TrainState, epoch_steps, learn_from

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


def tiny_steps(experiment: Experiment = EXPERIMENT) -> list[Step]:
    """Two steps: of four images, and of the two that are left."""
    numbers = torch.arange(6)
    pixels = Stream(0, "tiny").integers(numbers, 3 * 8 * 8, 256).view(6, 3, 8, 8).to(torch.uint8)
    part = Part(ImageSet(pixels, numbers % 3, ("a", "b", "c")), numbers)
    return list(epoch_steps(part, experiment, seed=0, epoch=0, num_blocks=3))


@pytest.mark.parametrize("name", ["auto", "fast", "compiled", "eager"])
def test_a_paths_name_is_itself(name: str) -> None:
    assert check_path(name) == name


def test_an_unknown_path_is_refused() -> None:
    with pytest.raises(InputError, match=r"unknown path 'quick' \(known: auto, fast, compiled, eager\)"):
        check_path("quick")


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
    assert choose_path("auto", experiment, device) == chosen


@pytest.mark.parametrize("name", ["eager", "compiled"])
@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_a_path_that_any_network_has_is_taken_as_named(name: PathName, device: torch.device) -> None:
    assert choose_path(name, RESNET, device) == name


def test_the_fast_path_is_taken_as_named_where_it_can_be_had() -> None:
    assert choose_path("fast", RESNEXT, CUDA) == "fast"


@pytest.mark.parametrize(("experiment", "device"), [(RESNET, CUDA), (RESNEXT, CPU)])
def test_the_fast_path_is_refused_where_it_cannot(experiment: Experiment, device: torch.device) -> None:
    here = f"this is a {experiment.model} on {device}; use --path auto"
    with pytest.raises(InputError, match=f"needs a GPU and a resnext29, and {here}"):
        choose_path("fast", experiment, device)


def test_the_fast_path_is_refused_without_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "triton", None)
    with pytest.raises(InputError, match=r"the fast path needs Triton, .* use --path compiled"):
        choose_path("fast", RESNEXT, CUDA)


def start() -> TrainState:
    model = build_model(EXPERIMENT, 3, 3, seed=0).train()
    return TrainState(model, make_optimiser(model, EXPERIMENT), torch.zeros(3, dtype=torch.float64))


def test_a_learner_on_a_cpu_is_learn_from() -> None:
    by_learner, directly = start(), start()
    learn = make_learner(by_learner, EXPERIMENT, "eager")
    for step in tiny_steps():
        learn(step)
        learn_from(directly, step, EXPERIMENT, directly.model)
    expected = directly.tensors()
    assert by_learner.tensors().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[name]) for name, tensor in by_learner.tensors().items())
    assert not torch.equal(expected["model.network.stem.0.weight"], start().tensors()["model.network.stem.0.weight"])


def test_forward_on_a_cpu_is_the_network_in_its_own_precision() -> None:
    model, step = start().model.double(), tiny_steps()[0]
    views_MBCHW = step.views.views_MBCHW.double()
    logits_MBK = make_forward(model, EXPERIMENT.batch_size, "eager", CPU)(views_MBCHW, step.views.keep)
    assert logits_MBK.dtype == torch.float64
    assert torch.equal(logits_MBK, model(views_MBCHW, step.views.keep))


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
    learn = make_learner(state, experiment, "compiled")
    for step in tiny_steps(experiment):
        learn(step)
    assert compiled == [4 * policy.views_a_step]


@pytest.mark.parametrize(
    "policy",
    [EXPERIMENT.policy, MemberPolicy(), MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))],
    ids=["adversarial", "plain", "consistency"],
)
def test_a_recorded_step_has_all_inputs_in_memory_of_its_own(policy: MemberPolicy) -> None:
    experiment = replace(EXPERIMENT, policy=policy, batch_size=3)
    first, second = tiny_steps(experiment)
    place = paths._Place(paths._own_copy(first))
    assert_equal(place.step, first)
    own, given = ({t.data_ptr() for t in paths._tensors(step)} for step in (place.step, first))
    assert own.isdisjoint(given)
    assert all(tensor.is_contiguous() for tensor in paths._tensors(place.step))
    place.take(second)
    assert_equal(place.step, second)
    assert {t.data_ptr() for t in paths._tensors(place.step)} == own


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

    def learn(step: Step) -> None:
        seen[len(step.labels_B)].append([(t.data_ptr(), t.stride()) for t in paths._tensors(step)])

    recorded = paths._Recorded(learn)
    for _ in range(6):
        for step in tiny_steps():
            recorded(step)
    for calls in seen.values():
        assert len(calls) == paths._EAGER_STEPS + 1, "those before the recording, and the recording"
        assert all(call == calls[0] for call in calls)
    assert [place.graph.replays for place in recorded._places.values()] == [3, 3]  # type: ignore[union-attr]
    assert pools == [None, "pool"]


def assert_equal(step: Step, expected: Step) -> None:
    """Field by field, so that a new one cannot be forgotten."""
    assert torch.equal(step.numbers_B, expected.numbers_B)
    assert torch.equal(step.labels_B, expected.labels_B)
    for name in Views.__dataclass_fields__:
        own, other = getattr(step.views, name), getattr(expected.views, name)
        assert own is other is None or torch.equal(own, other), name
