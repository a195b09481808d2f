"""The ways to compute a training step: the same function, at different speeds.

eager      plain PyTorch; what the others are compared with, and the way on a CPU
compiled   torch.compile, on a GPU for any network
fast       counterpoint's own kernels, on a GPU for the networks that `nn.fast` knows

On a GPU all three use bf16 activations. Compiled and fast steps are recorded once as a CUDA graph and then replayed, so
that the GPU never waits for Python.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.environment import has_triton
from counterpoint.errors import InputError, unknown
from counterpoint.nn import Ensemble
from counterpoint.steps import Forward, Step, TrainState, learn_from

PathName = Literal["auto", "fast", "compiled", "eager"]
Learner = Callable[[Step], None]

_EAGER_STEPS = 3  # before a step is recorded: libraries choose their kernels in the first ones


def check_path(name: str) -> PathName:
    """`name`, if it is a path's."""
    if name not in get_args(PathName):
        raise unknown("path", name, get_args(PathName))
    return name  # type: ignore[return-value]


def choose_path(name: PathName, experiment: Experiment, device: torch.device) -> PathName:
    """The path called `name` if it can be had; "auto" is the fastest that can."""
    on_gpu, known = device.type == "cuda", experiment.model == "resnext29"
    if name == "auto":
        return "eager" if not on_gpu else "fast" if known and has_triton() else "compiled"
    if name == "fast" and not (on_gpu and known):
        raise InputError(
            f"the fast path needs a GPU and a resnext29, and this is a {experiment.model} on {device}; "
            "use --path auto, compiled or eager"
        )
    if name == "fast" and not has_triton():
        raise InputError("the fast path needs Triton, which comes with PyTorch's CUDA builds; use --path compiled")
    return name


def make_learner(state: TrainState, experiment: Experiment, path: PathName) -> Learner:
    """What makes one update of `state` from a step, by the given path."""
    device = next(state.model.parameters()).device
    forward = make_forward(state.model, experiment.batch_size * experiment.policy.views_a_step, path, device)

    def learn(step: Step) -> None:
        learn_from(state, step, experiment, forward)

    return _Recorded(learn) if device.type == "cuda" and path != "eager" else learn


def make_forward(model: Ensemble, batch_size: int, path: PathName, device: torch.device) -> Forward:
    """(views, keep) to fp32 logits; on a GPU in bf16 mixed precision."""
    if path == "fast":
        from counterpoint.nn.fast import fast_forward

        return lambda views_MBCHW, keep: fast_forward(model, views_MBCHW, keep)
    on_gpu = device.type == "cuda"
    compiled = torch.compile(model, dynamic=False) if path == "compiled" else model

    def forward(views_MBCHW: Tensor, keep: Tensor | None) -> Tensor:
        # The smaller last batch of an epoch runs as it is: a second compile costs more than it saves.
        module = compiled if views_MBCHW.shape[1] == batch_size else model
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
            logits_MBK: Tensor = module(views_MBCHW, keep)
        return logits_MBK.float() if on_gpu else logits_MBK

    return forward


@dataclass
class _Place:
    """The memory in which steps of one size are computed, and, once it is recorded, the CUDA graph of such a step.

    Also the first steps, which are not recorded, have their inputs here: torch.compile makes code for the strides that
    it sees, and cannot make other code in the middle of a recording.
    """

    step: Step
    runs: int = 0
    graph: torch.cuda.CUDAGraph | None = None

    def take(self, step: Step) -> None:
        for own, new in zip(_tensors(self.step), _tensors(step), strict=True):
            own.copy_(new)


class _Recorded:
    """Runs the first steps of each batch size as they are, then records one and replays it from there on.

    Both happen on a stream of their own: autograd remembers the stream of a parameter's first use, and a recording must
    not depend on the default stream.
    """

    def __init__(self, learn: Learner) -> None:
        self._learn = learn
        self._stream = torch.cuda.Stream()
        self._places: dict[int, _Place] = {}

    def __call__(self, step: Step) -> None:
        size = len(step.labels_B)
        if size in self._places:
            self._places[size].take(step)
        else:
            self._places[size] = _Place(_own_copy(step))
        place = self._places[size]
        if place.runs < _EAGER_STEPS:
            self._run(place.step)
            place.runs += 1
            return
        if place.graph is None:
            place.graph = self._record(place.step)
        place.graph.replay()

    def _run(self, step: Step) -> None:
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._learn(step)
        torch.cuda.current_stream().wait_stream(self._stream)

    def _record(self, step: Step) -> torch.cuda.CUDAGraph:
        graph = torch.cuda.CUDAGraph()
        # One pool for all sizes: no two steps are under way at once.
        pool = next((place.graph.pool() for place in self._places.values() if place.graph), None)
        with torch.cuda.graph(graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"):
            self._learn(step)
        return graph


def _tensors(step: Step) -> list[Tensor]:
    views = step.views
    drawn = (views.views_MBCHW, views.amount_MB, views.keep_LMB, views.companions_2MBCHW)
    found = (step.numbers_B, step.labels_B, *drawn)
    return [tensor for tensor in found if tensor is not None]


def _own_copy(step: Step) -> Step:
    def own(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.clone(memory_format=torch.contiguous_format)

    views = step.views
    own_views = Views(
        views.views_MBCHW.contiguous().clone(),
        own(views.amount_MB),
        own(views.keep_LMB),
        own(views.companions_2MBCHW),
    )
    return Step(step.numbers_B.clone(), step.labels_B.clone(), own_views)
