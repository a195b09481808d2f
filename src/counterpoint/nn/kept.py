"""How many bytes a forward pass keeps for the backward pass, counted without keeping them."""

import weakref
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks

from counterpoint.nn.ensemble import Ensemble, tensors_in
from counterpoint.nn.recomputed import blocks_of


@dataclass(frozen=True)
class Kept:
    """Bytes that a step holds between its forward and its backward pass, without inputs, parameters and buffers."""

    everything: float
    """What autograd keeps."""
    recomputed: float
    """The most that is held at a time if blocks are computed again: their inputs, and one block's inside."""
    largest: float
    """The largest tensor among these."""

    def times(self, factor: float) -> "Kept":
        return Kept(factor * self.everything, factor * self.recomputed, factor * self.largest)

    def plus(self, other: "Kept") -> "Kept":
        return Kept(
            self.everything + other.everything, self.recomputed + other.recomputed, self.largest + other.largest
        )


def measure_kept(model: Ensemble, views_MBCHW: Tensor, keep: Tensor | None) -> Kept:
    """What a forward pass on these views keeps. The pass changes running statistics: give it a copy of the model.

    Autograd offers each tensor that it would keep. The tensor is counted and let go, so no more memory is needed than
    for a pass without gradients.
    """
    others = [views_MBCHW, *model.parameters(), *model.buffers()]
    count = _Count({tensor.untyped_storage()._cdata for tensor in others})
    hooks = []
    for block in blocks_of(model):
        hooks.append(block.register_forward_pre_hook(count.enter, with_kwargs=True))
        hooks.append(block.register_forward_hook(count.leave))
    try:
        with saved_tensors_hooks(count.keep, _no_backward):
            model(views_MBCHW, keep=keep)
    finally:
        for hook in hooks:
            hook.remove()
    recomputed = count.outside.bytes + max((ledger.bytes for ledger in count.insides), default=0)
    return Kept(count.everywhere.bytes, recomputed, count.everywhere.largest)


def _no_backward(_: Any) -> Tensor:
    raise RuntimeError("what the backward pass needs was counted and not kept")


@dataclass
class _Ledger:
    """The bytes of different storages. Tensors that share one count once."""

    bytes: int = 0
    largest: int = 0
    alive: dict[int, Any] = field(default_factory=dict)

    def note(self, tensor: Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.alive:
            # The next storage may get the address of one that has been let go.
            self.alive[key] = weakref.ref(storage, partial(self._forget, key))
            self.bytes += storage.nbytes()
            self.largest = max(self.largest, storage.nbytes())

    def _forget(self, key: int, _: Any) -> None:
        del self.alive[key]


class _Count:
    """What is kept everywhere, inside of each block, and outside of all; a block's inputs are outside of it."""

    def __init__(self, known: set[int]) -> None:
        self._known = known
        self.everywhere, self.outside = _Ledger(), _Ledger()
        self.insides: list[_Ledger] = []
        self._here = self.outside

    def keep(self, tensor: Tensor) -> None:
        key = tensor.untyped_storage()._cdata
        if key not in self._known:
            self.everywhere.note(tensor)
            if key not in self.outside.alive:
                self._here.note(tensor)

    def enter(self, _: nn.Module, inputs: tuple[Any, ...], by_name: dict[str, Any]) -> None:
        for tensor in tensors_in([inputs, by_name]):
            if tensor.untyped_storage()._cdata not in self._known:
                self.outside.note(tensor)
        self._here = _Ledger()
        self.insides.append(self._here)

    def leave(self, *_: Any) -> None:
        self._here = self.outside
