"""One member of an ensemble: copied out as a plain network, or alone for a while in the ensemble's own layers.

Copies are for inference, where BatchNorm is folded into the convolutions. In its own layers, one member at a time lets
a training step hold the activations of one member only.
"""

import copy
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.utils import fuse_conv_bn_eval

from counterpoint.errors import InputError, shown, whole_number
from counterpoint.nn.batch_ensemble import keep_one_member
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.members import MemberLayer
from counterpoint.nn.norm import PerMemberNorm, keep_one_norm

_OF_MEMBERS = ("r", "s", "bias", "member_bias")


def extract_member(ensemble: Ensemble, index: int) -> nn.Module:
    """Copy member `index` out of an ensemble, as a plain network. In a BatchEnsemble its weights are W ∘ r_i s_iᵀ.

    A layer that changes its weight before use keeps its own code, with r_i and s_i around it.

    >>> import torch
    >>> from counterpoint.nn import extract_member, resnet
    >>> ensemble = resnet(num_classes=10, num_members=2, width=4).eval()
    >>> member, images = extract_member(ensemble, 0), torch.randn(1, 3, 32, 32)
    >>> alone, inside = member(images).softmax(1), ensemble.predict_members(images)[0]
    >>> torch.allclose(alone, inside, atol=1e-5)
    True
    """
    if not isinstance(ensemble, Ensemble):
        raise InputError(f"the ensemble is {shown(ensemble)}; it must be an Ensemble, such as batch_ensemble gives")
    index = whole_number("member", index, 0, ensemble.num_members - 1)
    if isinstance(ensemble.network, IndependentMembers):
        return copy.deepcopy(ensemble.network.members[index])
    network = copy.deepcopy(ensemble.network)
    for module in network.modules():
        if isinstance(module, MemberLayer):
            keep_one_member(module, index)
        elif isinstance(module, PerMemberNorm):
            keep_one_norm(module, index)
    return network


def fold(ensemble: Ensemble) -> nn.ModuleList:
    """Every member as a plain network in evaluation mode, the same function of an image as before.

    BatchNorm is folded into the convolution before it where counterpoint's own networks have both. Elsewhere it stays:
    another network may look at what lies between the two, even if they stand together in an nn.Sequential.
    """
    members = nn.ModuleList(extract_member(ensemble, i) for i in range(ensemble.num_members))
    members.eval().requires_grad_(False)
    for module in members.modules():
        if isinstance(module, ConvNorm):
            _fold_batchnorm(module)
    return members


class ConvNorm(nn.Sequential):
    """A convolution and its BatchNorm. They are always called as a whole, so that one may be folded into the other."""


def _fold_batchnorm(layers: ConvNorm) -> None:
    conv, norm = layers
    if type(conv) is nn.Conv2d and type(norm) is nn.BatchNorm2d and not any(map(_has_hooks, layers)):
        layers[0], layers[1] = _fused(conv, norm), nn.Identity().eval()


def _has_hooks(layer: nn.Module) -> bool:
    """Hooks see or change what goes in and out, or compute the weight."""
    return bool(layer._forward_pre_hooks or layer._forward_hooks)


def _fused(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """Both as one convolution, computed in fp64 so that its weights are rounded once.

    The layers given stay as they are, since they may be used elsewhere too.
    """
    exact_conv, exact_norm = copy.deepcopy(conv).double(), copy.deepcopy(norm).double()
    return fuse_conv_bn_eval(exact_conv, exact_norm).to(conv.weight.dtype)


def check_member_by_member(model: Ensemble) -> None:
    """Raise if members depend on each other's rows: one after another would then give another result."""
    if model.num_members == 1 or isinstance(model.network, IndependentMembers):
        return
    if any(isinstance(m, _BatchNorm) and not isinstance(m, PerMemberNorm) for m in model.modules()):
        raise InputError(
            "BatchNorm is shared: it normalises over the views of all members, but one member at a "
            "time has only its own views; leave member_by_member (--member-by-member) out, or train "
            "another experiment with batchnorm=per-member"
        )


@contextmanager
def only_member(model: Ensemble, index: int) -> Iterator[None]:
    """Inside, the model is an ensemble of member `index` alone, with the same parameters and statistics.

    What belongs to members is seen through a slice, so that gradients and running statistics go where they belong. The
    backward pass must be inside too. Member 0 has to be the first of a step: it counts BatchNorm's batches.
    """
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
