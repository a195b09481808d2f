"""One member of an ensemble at a time, in the ensemble's own layers, so that a step holds one member's activations."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from counterpoint.errors import InputError
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.members import MemberLayer, check_member
from counterpoint.nn.norm import PerMemberNorm

_OF_MEMBERS = ("r", "s", "bias", "member_bias")


def check_member_by_member(model: Ensemble) -> None:
    """Raise if members depend on each other's rows: one after another would then give another result."""
    if model.num_members == 1 or isinstance(model.network, IndependentMembers):
        return
    if any(isinstance(m, _BatchNorm) and not isinstance(m, PerMemberNorm) for m in model.modules()):
        raise InputError(
            "BatchNorm is shared: it normalises over the views of all members, but one member at a "
            "time has only its own views; leave --member-by-member out, or train another experiment "
            "with --set batchnorm=per-member"
        )


@contextmanager
def only_member(model: Ensemble, index: int) -> Iterator[None]:
    """Inside, the model is an ensemble of member `index` alone, with the same parameters and statistics.

    What belongs to members is seen through a slice, so that gradients and running statistics go where they belong. The
    backward pass must be inside too. Member 0 has to be the first of a step: it counts BatchNorm's batches.
    """
    check_member(index, model.num_members)
    with ExitStack() as changes:
        for module in list(model.modules()):
            if isinstance(module, MemberLayer):
                parts = {n: p[index : index + 1] for n in _OF_MEMBERS if (p := module._parameters.get(n)) is not None}
                changes.enter_context(_replaced(module._parameters, parts))
                changes.enter_context(_replaced(vars(module), {"num_members": 1}))
            elif isinstance(module, PerMemberNorm):
                changes.enter_context(_one_norm(module, index))
            elif isinstance(module, IndependentMembers):
                one = {"members": nn.ModuleList([module.members[index]])}
                changes.enter_context(_replaced(module._modules, one))
        changes.enter_context(_replaced(vars(model), {"num_members": 1}))
        yield


@contextmanager
def _one_norm(norm: PerMemberNorm, index: int) -> Iterator[None]:
    def part(vectors: dict[str, Any], names: tuple[str, ...]) -> dict[str, Tensor]:
        there = {name: vectors[name] for name in names if vectors.get(name) is not None}
        return {name: vector.view(norm.num_members, -1)[index] for name, vector in there.items()}

    buffers = part(norm._buffers, ("running_mean", "running_var"))
    if index and (tracked := norm._buffers.get("num_batches_tracked")) is not None:
        buffers["num_batches_tracked"] = tracked - 1  # the batch is counted once, by member 0
    with (
        _replaced(norm._parameters, part(norm._parameters, ("weight", "bias"))),
        _replaced(norm._buffers, buffers),
        _replaced(vars(norm), {"num_members": 1}),
    ):
        yield


@contextmanager
def _replaced(values: dict[str, Any], others: dict[str, Any]) -> Iterator[None]:
    before = {name: values[name] for name in others}
    values.update(others)
    try:
        yield
    finally:
        values.update(before)
