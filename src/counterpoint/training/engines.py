"""Engines compute training steps: the same function, at different speeds.

eager      plain PyTorch: what the others are compared with, and what "auto" takes on a CPU
compiled   torch.compile, for any network
fast       counterpoint's own kernels, on a GPU for the networks that `nn.fast` knows, alone or as a BatchEnsemble

On a GPU all three use bf16 activations. Compiled and fast steps are recorded once as a CUDA graph and then replayed, so
that the GPU never waits for Python. Steps of several processes, eager or compiled, are not recorded.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from counterpoint.config import Experiment
from counterpoint.devices import has_triton
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.nn.activations import blocks_of, recompute_blocks
from counterpoint.nn.one_member import check_member_by_member
from counterpoint.parallel.world import ALONE, World
from counterpoint.training.batches import Batch
from counterpoint.training.step import Forward, TrainState, has_draws, take_step

EngineName = Literal["auto", "fast", "compiled", "eager"]
ENGINES: tuple[EngineName, ...] = get_args(EngineName)

_STEPS_BEFORE_RECORDING = 3  # libraries choose their kernels in the first steps


@dataclass
class Engine:
    """Takes training steps on `state`; `forward` computes the logits."""

    state: TrainState
    experiment: Experiment
    forward: Forward
    world: World = ALONE
    member_by_member: bool = False

    def step(self, batch: Batch) -> None:
        """One update of the state from what the members see."""
        take_step(self.state, batch, self.experiment, self.forward, self.world, self.member_by_member)


def choose_engine(
    name: EngineName,
    experiment: Experiment,
    device: torch.device,
    world: World = ALONE,
    *,
    less_memory: bool = False,
) -> EngineName:
    """The engine called `name` if it can run here; "auto" is the fastest that can."""
    on_gpu = device.type == "cuda"
    if less_memory and name not in ("auto", "eager"):
        raise InputError(
            f"the {name} engine keeps all activations; with less_memory (--less-memory) and member_by_member "
            "(--member-by-member) use the engine auto or eager"
        )
    if less_memory:
        return "eager"
    if not world.is_alone:
        return _choose_for_several(name, experiment, on_gpu, world)
    has_kernels = experiment.model == "resnext29" and experiment.ensemble == "batch"
    if name == "auto":
        return "eager" if not on_gpu else "fast" if has_kernels and has_triton() else "compiled"
    if name == "fast" and experiment.ensemble == "deep":
        raise InputError("the fast engine has no kernels for a deep ensemble; use the engine auto, compiled or eager")
    if name == "fast" and not (on_gpu and has_kernels):
        raise InputError(
            f"the fast engine needs a GPU and a resnext29, and this is a {experiment.model} on {device}; "
            "use the engine auto, compiled or eager"
        )
    if name == "fast" and not has_triton():
        raise InputError(
            "the fast engine needs Triton, which comes with PyTorch's CUDA builds; use the engine compiled"
        )
    return name


def _choose_for_several(name: EngineName, experiment: Experiment, on_gpu: bool, world: World) -> EngineName:
    """The same for several processes: the compiled engine needs batches that they divide evenly.

    Shapes that differ may be compiled to code in another order, and the processes would wait for each other for ever.
    """
    is_even = experiment.batch_size % world.size == 0
    if name == "fast":
        raise InputError(
            "the fast engine takes BatchNorm's statistics over one process's images, and not over those of "
            f"{world.size} processes; use the engine auto, compiled or eager"
        )
    if name == "compiled" and not is_even:
        raise InputError(
            f"the compiled engine needs a batch_size that {world.size} processes divide evenly, and it is "
            f"{experiment.batch_size}; use the engine eager, or another number of processes"
        )
    return ("compiled" if on_gpu and is_even else "eager") if name == "auto" else name


def check_saving(model: Ensemble, experiment: Experiment, *, less_memory: bool, member_by_member: bool) -> None:
    """Raise if memory cannot be saved in these ways with this network."""
    if member_by_member:
        check_member_by_member(model)
        if has_draws(model):
            raise InputError(
                f"{experiment.model} has layers that draw random numbers in training (dropout); with "
                "member_by_member (--member-by-member) these numbers would differ; leave it out"
            )
    if less_memory and not any(True for _ in blocks_of(model)):
        raise InputError(
            f"{experiment.model} has no list of blocks to compute again; leave less_memory (--less-memory) out"
        )


def make_engine(
    state: TrainState,
    experiment: Experiment,
    name: EngineName,
    world: World = ALONE,
    *,
    less_memory: bool = False,
    member_by_member: bool = False,
) -> Engine:
    """The engine called `name`, which takes training steps on `state`.

    For several processes the network's BatchNorm layers are changed, so that they normalise over all of them. With
    `less_memory` its blocks are, so that they keep no activations. With `member_by_member` a step goes through the
    members one after another.
    """
    check_saving(state.model, experiment, less_memory=less_memory, member_by_member=member_by_member)
    if not world.is_alone:
        from counterpoint.nn.norm_over_processes import normalise_over_processes

        normalise_over_processes(state.model, world)
    if less_memory:
        recompute_blocks(state.model)
    device = next(state.model.parameters()).device
    rows = world.count(experiment.batch_size) * experiment.policy.views_per_step
    forward = make_forward(state.model, rows, name, device)
    if device.type == "cuda" and name != "eager" and world.is_alone:
        return RecordedEngine(state, experiment, forward)
    return Engine(state, experiment, forward, world, member_by_member)


def make_forward(model: Ensemble, batch_size: int, name: EngineName, device: torch.device) -> Forward:
    """The function from (views, keep) to fp32 logits. On a GPU it computes in bf16 mixed precision."""
    if name == "fast":
        from counterpoint.nn.fast import fast_forward

        return lambda views_MBCHW, keep: fast_forward(model, views_MBCHW, keep)
    on_gpu = device.type == "cuda"
    compiled = torch.compile(model, dynamic=False) if name == "compiled" else model

    def forward(views_MBCHW: Tensor, keep: Tensor | None) -> Tensor:
        # The smaller last batch of an epoch runs uncompiled: compiling a second time costs more than it saves.
        module = compiled if views_MBCHW.shape[1] == batch_size else model
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
            logits_MBK: Tensor = module(views_MBCHW, keep=keep)
        return logits_MBK.float() if on_gpu else logits_MBK

    return forward


@dataclass
class _StepMemory:
    """The memory for the inputs of steps of one batch size, and the CUDA graph of such a step once it is recorded.

    The first steps, which are not recorded, have their inputs here too. torch.compile makes code for the strides that
    it sees, and cannot make other code in the middle of a recording.
    """

    batch: Batch
    runs: int = 0
    graph: torch.cuda.CUDAGraph | None = None

    @classmethod
    def of(cls, batch: Batch) -> "_StepMemory":
        return cls(batch.map(lambda tensor: tensor.clone(memory_format=torch.contiguous_format)))

    def take(self, batch: Batch) -> None:
        for kept, new in zip(self.batch.tensors, batch.tensors, strict=True):
            kept.copy_(new)


class RecordedEngine(Engine):
    """Runs the first steps of each batch size as they are, then records a step, and replays it from there on.

    The first steps and the recording have a stream of their own. Autograd remembers the stream on which a parameter was
    first used, and a recording must not depend on the default stream.
    """

    def __init__(self, state: TrainState, experiment: Experiment, forward: Forward) -> None:
        super().__init__(state, experiment, forward)
        self._stream = torch.cuda.Stream()
        self._memories: dict[int, _StepMemory] = {}

    def step(self, batch: Batch) -> None:
        memory = self._memory_of(batch)
        if memory.runs < _STEPS_BEFORE_RECORDING:
            self._run(memory.batch)
            memory.runs += 1
            return
        if memory.graph is None:
            memory.graph = self._record(memory.batch)
        memory.graph.replay()

    def _memory_of(self, batch: Batch) -> _StepMemory:
        size = len(batch.labels_B)
        if size in self._memories:
            self._memories[size].take(batch)
        else:
            self._memories[size] = _StepMemory.of(batch)
        return self._memories[size]

    def _run(self, batch: Batch) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            super().step(batch)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _record(self, batch: Batch) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # All sizes share one pool of memory, because two steps never run at the same time.
        pool = next((memory.graph.pool() for memory in self._memories.values() if memory.graph), None)
        with torch.cuda.graph(graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"):
            super().step(batch)
        return graph
