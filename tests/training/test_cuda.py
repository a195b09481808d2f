"""What must hold on a GPU; skipped where there is none. `make test-gpu` runs it with the other tests that use one."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment.views import sample_views
from counterpoint.config import Experiment
from counterpoint.data import parts_of
from counterpoint.data.sets import DataSet
from counterpoint.normalisation import Normalisation
from counterpoint.policy import MemberPolicy
from counterpoint.seeding import Stream
from counterpoint.training import engines
from counterpoint.training.batches import Batch, epoch_batches
from counterpoint.training.engines import Engine, EngineName, make_engine, make_forward
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from counterpoint.training.step import Forward, TrainState, take_step
from counterpoint.watching import SILENT
from tests.small import ALL_AUGMENTATIONS, TINY, noise_data

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")

RESNET = replace(TINY, dataset="cifar10", width=16, epochs=5, batch_size=32)
# Groups of 32, 64 and 128 channels: those that have a kernel of their own in the fast engine, and those that do not.
RESNEXT = replace(RESNET, model="resnext29", cardinality=2, base_width=32)
PLAIN = replace(RESNEXT, policy=MemberPolicy(), learning_rate=0.01)


@pytest.fixture(autouse=True)
def backends() -> Iterator[None]:
    """fp32 without TF32, and whatever a test or a training sets is set back."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    before = cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32, torch.are_deterministic_algorithms_enabled()
    cudnn.allow_tf32 = matmul.allow_tf32 = False
    yield
    cudnn.benchmark, cudnn.allow_tf32, matmul.allow_tf32 = before[:3]
    torch.use_deterministic_algorithms(before[3])


@pytest.fixture
def deterministic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = False


def tiny_data(count: int = 80) -> DataSet:
    """With batches of 32 the last of an epoch has 16 images."""
    return noise_data(count, 10, size=32)


def start(experiment: Experiment) -> TrainState:
    model = build_model(experiment, 10, 3, seed=0)
    model = model.to("cuda", memory_format=torch.channels_last).train()  # type: ignore[call-overload]
    return TrainState.before_first_step(model, experiment)


def batches_of(experiment: Experiment, epochs: int) -> Iterator[Batch]:
    part = parts_of(tiny_data(), experiment).train.to(torch.device("cuda"))
    for epoch in range(epochs):
        yield from epoch_batches(part, experiment, seed=0, epoch=epoch, num_blocks=9)


def trained(engine: Engine, epochs: int = 5) -> dict[str, Tensor]:
    """Everything that a training leaves behind, on the CPU."""
    for batch in batches_of(engine.experiment, epochs):
        update(engine, batch, total=100)
    return {name: tensor.detach().cpu() for name, tensor in engine.state.tensors().items()}


def recorded(experiment: Experiment) -> Engine:
    return make_engine(start(experiment), experiment, "fast")


def unrecorded(experiment: Experiment, name: EngineName) -> Engine:
    state = start(experiment)
    return Engine(state, experiment, make_forward(state.model, experiment.batch_size, name, torch.device("cuda")))


def assert_same_bits(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    assert found.keys() == expected.keys()
    assert [name for name in found if not torch.equal(found[name], expected[name])] == []


def test_the_streams_are_the_same_on_both_devices() -> None:
    stream = Stream(1, "x", 2, 3)
    numbers = torch.arange(10_000)
    assert torch.equal(stream.uniform(numbers.cuda(), 7).cpu(), stream.uniform(numbers, 7))
    assert torch.equal(stream.permutation(10_000, "cuda").cpu(), stream.permutation(10_000))


def test_the_views_are_the_same_on_both_devices() -> None:
    images = tiny_data(200).train.images_NCHW
    numbers = torch.arange(200)
    on_cpu, on_gpu = (
        sample_views(
            images.to(device),
            ALL_AUGMENTATIONS,
            num_members=2,
            indices_B=numbers.to(device),
            steps_B=(numbers // 32).to(device),
            seed=0,
            epoch=1,
            num_blocks=3,
        )
        for device in ("cpu", "cuda")
    )
    assert (on_gpu.views_MBCHW.cpu() - on_cpu.views_MBCHW).abs().max() < 2e-6  # 1e-6 of [0, 1], stretched to [−1, 1]
    assert on_cpu.amount_MB is not None
    assert on_gpu.amount_MB is not None
    assert torch.equal(on_gpu.amount_MB.cpu(), on_cpu.amount_MB)
    assert on_cpu.keep_LMB is not None
    assert on_gpu.keep_LMB is not None
    assert torch.equal(on_gpu.keep_LMB.cpu(), on_cpu.keep_LMB)


def kind_of(name: str) -> str:
    """r or s, or weight or bias of a convolution (0), a BatchNorm (1) or the classifier."""
    *_, layer, parameter = name.split(".")
    return parameter if parameter in ("r", "s") else f"{layer}.{parameter}"


def outcome(state: TrainState, batch: Batch, forward: Forward) -> dict[str, Tensor]:
    """The logits and all gradients, those of a kind of parameter as one vector."""
    state.model.zero_grad()
    views_MBCHW = batch.views.views_MBCHW.detach().clone().requires_grad_()
    logits_MBK = forward(views_MBCHW, batch.views.keep)
    cross_entropy(logits_MBK.flatten(0, 1), batch.labels_B.repeat(len(logits_MBK))).backward()
    assert views_MBCHW.grad is not None
    gradients: dict[str, list[Tensor]] = {}
    for name, parameter in state.model.named_parameters():
        assert parameter.grad is not None, name
        gradients.setdefault(kind_of(name), []).append(parameter.grad.flatten())
    vectors = {kind: torch.cat(parts) for kind, parts in gradients.items()}
    return {"logits": logits_MBK.detach(), "views": views_MBCHW.grad} | vectors


def relative(found: Tensor, exact: Tensor) -> float:
    return float((found - exact).norm() / exact.norm())


@pytest.mark.parametrize(
    "experiment",
    [
        RESNEXT,
        replace(RESNEXT, batchnorm="per-member"),
        replace(PLAIN, num_members=None),
    ],
    ids=["shared", "per-member", "single"],
)
def test_the_fast_engine_is_as_exact_as_bf16_eager(experiment: Experiment) -> None:
    """From fp32 it is no further than 1.5 times as far as plain PyTorch in bf16, which rounds more often."""
    state = start(experiment)
    batch = next(batches_of(experiment, 1))
    device = torch.device("cuda")
    exact = outcome(state, batch, state.model)
    eager, fast = (
        outcome(state, batch, make_forward(state.model, experiment.batch_size, name, device))
        for name in ("eager", "fast")
    )
    distances = {kind: (relative(fast[kind], exact[kind]), relative(eager[kind], exact[kind])) for kind in exact}
    assert {kind: pair for kind, pair in distances.items() if not pair[0] <= 1.5 * pair[1]} == {}


@pytest.mark.usefixtures("deterministic")
def test_a_recorded_step_is_the_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten steps of 32 images and five of 16, each size recorded after three, with all augmentations."""
    computed: Counter[int] = Counter()

    def count(state: TrainState, batch: Batch, *how: Any) -> None:
        computed[len(batch.labels_B)] += 1
        take_step(state, batch, *how)

    with monkeypatch.context() as patched:
        patched.setattr(engines, "take_step", count)
        found = trained(recorded(RESNEXT))
    assert computed == {32: 4, 16: 4}, "three before the recording, and the recording"
    assert_same_bits(found, trained(unrecorded(RESNEXT, "fast")))


@pytest.mark.usefixtures("deterministic")
def test_a_recorded_step_of_adamw_is_the_step() -> None:
    experiment = replace(RESNEXT, optimiser="adamw", learning_rate=0.001)
    assert_same_bits(trained(recorded(experiment)), trained(unrecorded(experiment, "fast")))


@pytest.mark.usefixtures("deterministic")
def test_a_second_stream_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from counterpoint.nn.fast import grouped, pointwise

    with_two = trained(recorded(RESNEXT))
    for module in (grouped, pointwise):
        monkeypatch.setattr(module, "run_on_second_stream", lambda work, *_: work())
    assert_same_bits(with_two, trained(recorded(RESNEXT)))


@pytest.mark.usefixtures("deterministic")
def test_a_training_gives_the_same_bits_again() -> None:
    assert_same_bits(trained(recorded(RESNEXT)), trained(recorded(RESNEXT)))


def test_a_normalisation_by_channel_can_be_recorded() -> None:
    """The adversarial perturbation scales and clips inside the recorded step."""
    by_channel = Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))
    seen, amounts = 3 * torch.randn(2, 4, 3, 8, 8), torch.rand(2, 4, 1, 1, 1)
    on_gpu = seen.cuda(), amounts.cuda()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = by_channel.clip(on_gpu[0] + by_channel.scale(on_gpu[1]))
    graph.replay()
    torch.testing.assert_close(found.cpu(), by_channel.clip(seen + by_channel.scale(amounts)))


def test_thirty_steps_lead_to_the_same_place() -> None:
    """From where fp32 ends, the fast engine ends no further than twice as far as bf16 eager."""

    def weights(engine: Engine) -> Tensor:
        tensors = trained(engine, epochs=10)
        names = [name.removeprefix("momentum.") for name in tensors if name.startswith("momentum.")]
        return torch.cat([tensors[f"model.{name}"].flatten() for name in names])

    exact = start(PLAIN)
    fp32 = weights(Engine(exact, PLAIN, exact.model))
    fast, eager = weights(recorded(PLAIN)), weights(unrecorded(PLAIN, "eager"))
    assert relative(fast, fp32) <= 2 * relative(eager, fp32)


@pytest.mark.parametrize(
    ("engine", "experiment"),
    [
        ("eager", RESNEXT),
        ("compiled", replace(RESNET, policy=MemberPolicy())),
        ("auto", replace(RESNET, policy=MemberPolicy(), ensemble="deep")),
        ("fast", RESNEXT),
        ("fast", replace(RESNEXT, optimiser="adamw", learning_rate=0.001)),
    ],
    ids=["eager", "compiled", "deep", "fast", "AdamW"],
)
def test_resume_gives_the_same_bits_when_deterministic(
    tmp_path: Path, engine: EngineName, experiment: Experiment
) -> None:
    """Compiling takes most of the time: the compiled networks are the smaller ones, without adversarial views."""
    options = Options(device="cuda", deterministic=True, engine=engine)
    assert train(experiment, tmp_path / "whole", tiny_data(), options=options, watcher=SILENT)
    calls = 0

    def after_five_steps() -> bool:
        nonlocal calls
        calls += 1
        return calls == 5

    assert not train(
        experiment, tmp_path / "parts", tiny_data(), options=options, watcher=SILENT, should_stop=after_five_steps
    )
    assert train(experiment, tmp_path / "parts", tiny_data(), options=options, watcher=SILENT)
    whole, parts = (
        load_file(sorted((tmp_path / name / "checkpoints").glob("step-*"))[-1]) for name in ("whole", "parts")
    )
    assert_same_bits(whole, parts)


def test_the_gpu_learns_what_the_cpu_learns(tmp_path: Path) -> None:
    """The first epochs' losses agree to bf16's precision."""
    experiment = replace(RESNET, policy=MemberPolicy(), epochs=1)
    losses = []
    for device in ("cpu", "cuda"):
        train(
            experiment,
            tmp_path / device,
            tiny_data(200),
            options=Options(device=device, engine="eager"),
            watcher=SILENT,
        )
        log = (tmp_path / device / "log.jsonl").read_text()
        losses.append(float(log.rpartition('"loss": ')[2].partition(",")[0]))
    assert losses[1] == pytest.approx(losses[0], rel=0.02)
