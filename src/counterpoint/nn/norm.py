"""BatchNorm for folded batches: shared by the members (torch's own layer) or one for each member."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.instancenorm import _InstanceNorm

from counterpoint.nn.members import rows_per_member

_VECTORS = ("weight", "bias", "running_mean", "running_var")


class PerMemberNorm(nn.Module):
    """M independent BatchNorm layers: statistics and affine parameters of member i are entries i·C … (i+1)·C − 1."""

    plain: type[nn.Module]
    num_members: int

    def forward(self, input: Tensor) -> Tensor:
        rows_per_member(input.shape[0], self.num_members)
        members_as_channels = input.unflatten(0, (self.num_members, -1)).transpose(0, 1).flatten(1, 2)
        normalised: Tensor = super().forward(members_as_channels)
        return normalised.unflatten(1, (self.num_members, -1)).transpose(0, 1).flatten(0, 1)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # Its class may have been made when it was needed, so pickle cannot import it.
        return _blank, (self.plain,), self.__getstate__()


class PerMemberBatchNorm2d(PerMemberNorm, nn.BatchNorm2d):
    """BatchNorm for images (M·B, C, H, W) with statistics, scales and shifts of each member's own.

    >>> import torch
    >>> from counterpoint.nn import PerMemberBatchNorm2d
    >>> norm = PerMemberBatchNorm2d(8, num_members=2)
    >>> norm(torch.randn(2 * 3, 8, 4, 4)).shape
    torch.Size([6, 8, 4, 4])
    """

    plain = nn.BatchNorm2d

    def __init__(self, num_features: int, *, num_members: int, **options: Any) -> None:
        super().__init__(num_members * num_features, **options)
        self.num_members = num_members


def give_each_member_a_norm(norm: _BatchNorm, num_members: int) -> None:
    """Make `norm` a norm per member. Every member starts with its parameters and statistics."""
    plain = type(norm)
    each: Any = norm
    each.__class__ = _per_member(plain)
    each.num_members, norm.num_features = num_members, num_members * norm.num_features
    _change_vectors(norm, lambda vector: vector.repeat(num_members))


def keep_one_norm(norm: PerMemberNorm, index: int) -> None:
    """Make `norm` the plain norm that member `index` has."""
    each: Any = norm
    each.num_features //= norm.num_members
    _change_vectors(norm, lambda vector: vector.view(norm.num_members, -1)[index].clone())
    del each.num_members
    each.__class__ = norm.plain


def _per_member(plain: type[nn.Module]) -> type[PerMemberNorm]:
    if plain is nn.BatchNorm2d:
        return PerMemberBatchNorm2d
    return type(f"PerMember{plain.__name__}", (PerMemberNorm, plain), {"plain": plain})


def _blank(plain: type[nn.Module]) -> PerMemberNorm:
    cls = _per_member(plain)
    return cls.__new__(cls)


@torch.no_grad()
def _change_vectors(norm: nn.Module, change: Any) -> None:
    for name in _VECTORS:
        vector = getattr(norm, name)
        if isinstance(vector, nn.Parameter):
            setattr(norm, name, nn.Parameter(change(vector), vector.requires_grad))
        elif vector is not None:
            setattr(norm, name, change(vector))


@contextmanager
def left_untouched(model: nn.Module) -> Iterator[None]:
    """Inside, a pass in training mode changes neither running statistics nor parameters' gradients.

    Norms still normalise with the statistics of what they get. The adversarial pass needs this (docs/paper.md, 9).
    """
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.track_running_stats]
    # What is no leaf is one member's slice of a parameter, and gets no gradient of its own.
    parameters = [p for p in model.parameters() if p.requires_grad and p.is_leaf]
    # An InstanceNorm moves its running statistics, if it sees them, whatever it is told to track.
    hidden = [(m, dict(m._buffers)) for m in model.modules() if isinstance(m, _InstanceNorm) and m.training]
    for norm in norms:
        norm.track_running_stats = False
    for instance_norm, buffers in hidden:
        instance_norm._buffers.update(dict.fromkeys(buffers))
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
        for instance_norm, buffers in hidden:
            instance_norm._buffers.update(buffers)
        for parameter in parameters:
            parameter.requires_grad_(True)
