"""What a forward pass keeps for the backward pass: its bytes, counted, and blocks that keep less.

A block that keeps less computes its activations again in the backward pass. The result is the same to the last bit: the
second computation does not change running statistics again, and makes the same random draws.
"""

import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from counterpoint.errors import InputError
from counterpoint.nn.ensemble import Ensemble, tensors_in

_CONTAINERS = (nn.Sequential, nn.ModuleList)


def recompute_blocks(model: nn.Module) -> int:
    """Make every block of the model keep only its inputs, and return the number of blocks.

    A block is a module with parts of its own that stands in a list of modules, as networks have their layers.
    """
    blocks = list(blocks_of(model))
    for block in blocks:
        block.__class__ = _recomputed(type(block))  # type: ignore[arg-type]
    return len(blocks)


def blocks_of(module: nn.Module) -> Iterator[nn.Module]:
    """The blocks that `recompute_blocks` changes. None of them lies in another."""
    for child in module.children():
        stands_in_list = isinstance(module, _CONTAINERS) and not isinstance(child, _CONTAINERS)
        if stands_in_list and any(True for _ in child.children()):
            yield child
        else:
            yield from blocks_of(child)


class _Recomputed(nn.Module):
    """A block of any class, with its own code."""

    def forward(self, *inputs: Any, **by_name: Any) -> Any:
        if not (self.training and torch.is_grad_enabled()):
            return super().forward(*inputs, **by_name)
        return checkpoint(super().forward, *inputs, use_reentrant=False, context_fn=self._contexts, **by_name)

    def _contexts(self) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _second_time(self)


@cache
def _recomputed(plain: Any) -> type[nn.Module]:
    return type(plain.__name__, (_Recomputed, plain), {})


@contextmanager
def _second_time(block: nn.Module) -> Iterator[None]:
    """Inside, running statistics are copies, and are put back. A block that changes anything else is refused."""
    norms = [module for module in block.modules() if isinstance(module, _BatchNorm)]
    statistics = [dict(norm._buffers) for norm in norms]
    for norm, kept in zip(norms, statistics, strict=True):
        norm._buffers.update({name: None if buffer is None else buffer.clone() for name, buffer in kept.items()})
    before = _versions(block)
    try:
        yield
    finally:  # torch ends the second computation by an exception as soon as it has what it needs
        changed = [name for name, version in _versions(block).items() if before[name] != version]
        for norm, kept in zip(norms, statistics, strict=True):
            norm._buffers.update(kept)
        _check_same(block, changed)


def _versions(block: nn.Module) -> dict[str, int]:
    """How often each buffer that is not BatchNorm's has been changed."""
    return {
        f"{name}.{own}".lstrip("."): buffer._version
        for name, module in block.named_modules()
        if not isinstance(module, _BatchNorm)
        for own, buffer in module.named_buffers(recurse=False)
    }


def _check_same(block: nn.Module, changed: list[str]) -> None:
    if changed:
        raise InputError(
            f"{type(block).__name__} changes {changed[0]} in each pass, so computing its activations "
            "a second time would change the result; leave less_memory (--less-memory) out"
        )


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
