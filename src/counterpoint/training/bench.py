"""How fast a training step is, engine by engine.

All engines are measured in one run, on one machine and with the same inputs, so that their numbers can be compared.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, pairwise
from statistics import median
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.devices import arithmetic, moved
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.policy import MemberPolicy
from counterpoint.training.batches import STEPS_AT_ONCE, Batch, epoch_batches
from counterpoint.training.engines import Engine, EngineName, choose_engine, make_engine, make_forward
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import Forward, TrainState

_INPUT_SETS = 8
_CLASSES = 10


@dataclass(frozen=True)
class Timing:
    """How long a step takes, computed as `name` says, and the memory that it needs."""

    name: str
    milliseconds: float
    member_images_per_second: float
    share_of_floor: float
    """The floor's time divided by this one."""
    peak_gigabytes: float

    def __str__(self) -> str:
        return (
            f"{self.name:44}{self.milliseconds:8.2f} ms{self.member_images_per_second:10,.0f} member-images/s"
            f"{self.share_of_floor:6.0%} of the floor{self.peak_gigabytes:7.2f} GB"
        )


@dataclass(frozen=True)
class Difference:
    """How far an engine is from fp32: ‖difference‖ / ‖fp32‖ of the logits, and of all gradients as one vector."""

    name: str
    logits: float
    gradients: float

    def __str__(self) -> str:
        return f"{self.name} against fp32: logits {self.logits:.1e}, gradients {self.gradients:.1e} (relative)"


def measure(experiment: Experiment, *, repeats: int, slow: bool) -> Iterator[Difference | Timing]:
    """How far the engines are from fp32, then how long each takes."""
    yield from differences(experiment)
    yield from time_steps(experiment, repeats=repeats, slow=slow)


def time_steps(experiment: Experiment, *, repeats: int = 40, slow: bool = True) -> Iterator[Timing]:
    """Time a step of `experiment` on this machine's GPU, computed by each engine; `slow` includes eager PyTorch."""
    _check(experiment)
    floor = floor_milliseconds(experiment)
    rows = experiment.members * experiment.batch_size
    variants: list[tuple[str, Experiment, Callable[[TrainState, Experiment], Engine]]] = [
        ("torch.compile", experiment, _compiled_without_graph),
        ("torch.compile, CUDA graph", experiment, partial(make_engine, name="compiled")),
        ("fast", experiment, partial(make_engine, name="fast")),
    ]
    if experiment.members > 1 and experiment.policy.adversarial is None:
        plain = replace(experiment, num_members=None, batch_size=rows, policy=MemberPolicy())
        variants.insert(0, (f"no members, {rows} images, torch.compile", plain, _compiled_without_graph))
    if slow:
        variants[:0] = [
            ("fp32 eager", experiment, _fp32_eager),
            ("TF32 eager, channels-last", experiment, _tf32_eager),
            ("bf16 eager", experiment, partial(make_engine, name="eager")),
        ]
    for name, timed, make in variants:
        milliseconds, gigabytes = _time(timed, make, repeats)
        yield Timing(name, milliseconds, 1000 * rows / milliseconds, floor / milliseconds, gigabytes)
    milliseconds, gigabytes = _time_with_views(experiment)
    yield Timing("fast, views included", milliseconds, 1000 * rows / milliseconds, floor / milliseconds, gigabytes)


def differences(experiment: Experiment) -> Iterator[Difference]:
    """How far the eager engine in bf16 and the fast one are from fp32, from the same weights and views."""
    _check(experiment)
    state = _start(experiment)
    batch = next(_batches(state, experiment, 1))
    device = torch.device("cuda")
    with arithmetic("strict", device):
        exact = _logits_and_gradients(state.model, batch, state.model)
    engines: dict[str, EngineName] = {"bf16 eager": "eager", "fast": "fast"}
    for shown, name in engines.items():
        forward = make_forward(state.model, experiment.batch_size, name, device)
        logits, gradients = _logits_and_gradients(state.model, batch, forward)
        yield Difference(shown, _relative(logits, exact[0]), _relative(gradients, exact[1]))


def floor_milliseconds(experiment: Experiment) -> float:
    """The least that a step can take at this GPU's measured rates, if each convolution is a kernel of its own.

    A convolution has three products: forward, input gradient and weight gradient. Each takes the larger of its bytes
    over the bandwidth and its operations over the matrix rate. Training BatchNorm passes over the convolution's output
    seven times more (statistics 1, normalise 2, backward 2 + 3). The adversarial gradient adds a forward pass and the
    input gradients of a backward pass.
    """
    bandwidth, operations = copy_bandwidth(), matrix_rate()
    convolutions = norm_passes = 0.0
    for conv, read, written in _convolutions(experiment):
        product = 2 * written * conv.in_channels // conv.groups * conv.kernel_size[0] * conv.kernel_size[1]
        convolutions += max(product / operations, 2 * (read + written) / bandwidth)
        norm_passes += 2 * written / bandwidth
    times = 3 * convolutions + 7 * norm_passes
    if experiment.policy.adversarial:
        times += 2 * convolutions + 7 * norm_passes
    return 1000 * times


def copy_bandwidth() -> float:
    """Bytes per second of a large copy on the device; bytes read and bytes written both count."""
    source = torch.empty(2**30, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * source.numel() / (_median_milliseconds(lambda: target.copy_(source), 20) / 1000)


def matrix_rate() -> float:
    """Operations per second of a large bf16 matrix product of random numbers."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / (_median_milliseconds(lambda: a @ b, 20) / 1000)


def _check(experiment: Experiment) -> None:
    if not torch.cuda.is_available():
        raise InputError("bench step compares the engines on an NVIDIA GPU, and torch sees none here")
    choose_engine("fast", experiment, torch.device("cuda"))


def _start(experiment: Experiment) -> TrainState:
    device = torch.device("cuda")
    torch.backends.cudnn.benchmark = True
    model = moved(build_model(experiment, _CLASSES, 3, seed=0), device).train()
    return TrainState.before_first_step(model, experiment)


def _batches(state: TrainState, experiment: Experiment, count: int, at_once: int = _INPUT_SETS) -> Iterator[Batch]:
    """Batches of random images."""
    images = count * experiment.batch_size
    pixels = torch.randint(0, 256, (images, 3, 32, 32), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    made = ImageSet(pixels, torch.arange(images) % _CLASSES, tuple("abcdefghij")).to("cuda")
    return epoch_batches(made, experiment, seed=0, epoch=0, at_once=at_once, num_blocks=state.model.num_blocks)


def _time(
    experiment: Experiment, make: Callable[[TrainState, Experiment], Engine], repeats: int
) -> tuple[float, float]:
    """Median milliseconds of a step, and the most memory it used."""
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    state = _start(experiment)
    engine = make(state, experiment)
    turns = cycle(list(_batches(state, experiment, _INPUT_SETS)))
    torch.cuda.reset_peak_memory_stats()

    def step() -> None:
        update(engine, next(turns), total=10_000)

    for _ in range(_INPUT_SETS):
        step()
    return _median_milliseconds(step, repeats), torch.cuda.max_memory_allocated() / 1e9


def _time_with_views(experiment: Experiment) -> tuple[float, float]:
    """Milliseconds of a step of the fast engine, views included, and the most memory it used.

    As in training, views are made for many steps together. The first of these steps pays for all, so this is a mean.
    """
    torch.cuda.empty_cache()
    state, at_once, rounds = _start(experiment), STEPS_AT_ONCE["cuda"], 3
    engine = make_engine(state, experiment, "fast")
    torch.cuda.reset_peak_memory_stats()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    for number, batch in enumerate(_batches(state, experiment, (rounds + 1) * at_once, at_once)):
        if number == at_once - 1:  # after this step the next round's views are made
            begin.record()
        update(engine, batch, total=10_000)
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / (rounds * at_once + 1), torch.cuda.max_memory_allocated() / 1e9


def _median_milliseconds(work: Callable[[], object], repeats: int) -> float:
    work()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    torch.cuda.synchronize()
    return median(before.elapsed_time(after) for before, after in pairwise(events))


class _StrictEngine(Engine):
    """fp32 without TF32."""

    def step(self, batch: Batch) -> None:
        with arithmetic("strict", torch.device("cuda")):
            super().step(batch)


def _fp32_eager(state: TrainState, experiment: Experiment) -> Engine:
    """In the memory layout that PyTorch's networks have from the start."""
    state.model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return _StrictEngine(state, experiment, state.model)


def _tf32_eager(state: TrainState, experiment: Experiment) -> Engine:
    """PyTorch's default for fp32 convolutions, in the memory layout that is faster for them."""
    return Engine(state, experiment, state.model)


def _compiled_without_graph(state: TrainState, experiment: Experiment) -> Engine:
    forward = make_forward(state.model, experiment.batch_size, "compiled", torch.device("cuda"))
    return Engine(state, experiment, forward)


def _logits_and_gradients(model: Ensemble, batch: Batch, forward: Forward) -> tuple[Tensor, Tensor]:
    model.zero_grad(set_to_none=True)
    logits_MBK = forward(batch.views.views_MBCHW, batch.views.keep)
    cross_entropy(logits_MBK.flatten(0, 1), batch.labels_B.repeat(len(logits_MBK))).backward()
    gradients = [parameter.grad.flatten() for parameter in model.parameters() if parameter.grad is not None]
    return logits_MBK.detach(), torch.cat(gradients)


def _relative(found: Tensor, exact: Tensor) -> float:
    return float((found.double() - exact.double()).norm() / exact.double().norm())


def _convolutions(experiment: Experiment) -> list[tuple[nn.Conv2d, int, int]]:
    """The network's convolutions, each with the number of values that it reads and writes in a step."""
    rows = experiment.members * experiment.batch_size
    found: list[tuple[nn.Conv2d, int, int]] = []

    def note(conv: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        skipped = conv.stride[0] * conv.stride[1] if conv.kernel_size == (1, 1) else 1
        found.append((conv, rows * (inputs[0][0].numel() // skipped), rows * output[0].numel()))

    model = build_model(experiment, _CLASSES, 3, seed=0).eval()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            module.register_forward_hook(note)
    model(torch.zeros(experiment.members, 1, 3, 32, 32))
    return found
