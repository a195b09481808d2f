"""Blocks whose activations are computed again in the backward pass, so that a step needs less memory.

The result is the same to the last bit: the second computation does not change running statistics again, and makes the
same random draws.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from counterpoint.errors import InputError

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
            "a second time would change the result; leave --less-memory out"
        )
