"""Which modules a forward pass goes through, with what goes in and out, and which weights are read past their layer."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from counterpoint.nn.ensemble import tensors_in


@dataclass(frozen=True)
class Moment:
    """A module begins or ends. `caller` is the module whose code calls it."""

    module: nn.Module
    caller: nn.Module | None
    when: Literal["begins", "ends"]
    tensors: tuple[Tensor, ...]


@dataclass
class Pass:
    """A forward pass that is under way."""

    active: list[nn.Module] = field(default_factory=list)
    """The modules whose code is running, the innermost last. After an error it is where the error was raised."""
    called: dict[nn.Module, list[torch.Size]] = field(default_factory=dict)
    """Every module that is called, and the shape of its first input in each call."""
    read_by: dict[nn.Module, nn.Module] = field(default_factory=dict)
    """Layers whose weights are used by another module's code, and the first such module."""


@contextmanager
def watched(
    network: nn.Module, see: Callable[[Moment], None] | None = None, layers: Sequence[nn.Module] = ()
) -> Iterator[Pass]:
    """Inside, forward passes of `network` are followed: `see` gets every moment, and readers of `layers` are noted."""
    current = Pass()

    def begin(module: nn.Module, inputs: Any, by_name: Any) -> None:
        caller = current.active[-1] if current.active else None
        current.active.append(module)
        tensors = tuple(tensors_in([inputs, by_name]))
        current.called.setdefault(module, []).append(tensors[0].shape if tensors else torch.Size())
        if see is not None:
            see(Moment(module, caller, "begins", tensors))

    def end(module: nn.Module, _: Any, output: Any) -> None:
        current.active.pop()
        if see is not None:
            caller = current.active[-1] if current.active else None
            see(Moment(module, caller, "ends", tuple(tensors_in(output))))

    handles = []
    for module in network.modules():
        handles.append(module.register_forward_pre_hook(begin, with_kwargs=True, prepend=True))
        handles.append(module.register_forward_hook(end))
    try:
        with _WeightReaders(layers, current), _uncompiled():
            yield current
    finally:
        for handle in handles:
            handle.remove()


def _uncompiled() -> AbstractContextManager[Any]:
    """Inside, what torch.compile made runs as it was written: the compiler fails on hooks that watch modules."""
    if "torch._dynamo" not in sys.modules:  # nothing was compiled, and importing the compiler takes seconds
        return nullcontext()
    return torch.compiler.set_stance("force_eager")


class _WeightReaders(TorchFunctionMode):
    """Notes when a layer's weight is used by code other than its own."""

    def __init__(self, layers: Sequence[nn.Module], current: Pass) -> None:
        super().__init__()
        self._layer_of = {id(p): layer for layer in layers for p in layer.parameters(recurse=False)}
        self._current = current

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        gives_tensors = next(tensors_in(result), None) is not None
        if gives_tensors and self._current.active:  # asking for a dtype or a shape is no use of the weight
            for tensor in tensors_in([args, kwargs or {}]):
                layer = self._layer_of.get(id(tensor))
                if layer is not None and layer not in self._current.active:
                    self._current.read_by.setdefault(layer, self._current.active[-1])
        return result
