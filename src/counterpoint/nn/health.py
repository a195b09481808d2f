"""How much of a network training has switched off, and how far its members still differ, from its parameters alone."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from counterpoint.nn.members import MemberLayer

DEAD_BELOW = 0.001
"""A BatchNorm scale smaller than this is dead: its channel hardly depends on the image any more."""


@dataclass(frozen=True)
class Health:
    """The state of a network's channels. If each member has its own BatchNorm, each member's channels count.

    `below_eps` counts the channels whose running variance is below BatchNorm's eps, and `dead_scales` those whose scale
    is nearly 0. The spread says how much the members' r and s differ: the square root of their variance over the
    members (divisor M − 1), averaged over every entry of every layer. It starts at about `init_std`; identical members
    have 0.

    >>> from counterpoint.nn import measure_health, resnet
    >>> health = measure_health(resnet(num_classes=10, num_members=2, width=4))
    >>> health.channels, health.below_eps, health.dead_scales
    (84, 0, 0)
    """

    channels: int  # of all BatchNorm layers
    below_eps: int  # channels whose running variance is below their layer's eps, so that they are not normalised
    dead_scales: int  # channels whose BatchNorm scale is below DEAD_BELOW in size
    spread_r: float | None  # None where no two members can be compared, or where it is not a number
    spread_s: float | None


@torch.no_grad()
def measure_health(model: nn.Module) -> Health:
    """How many channels the network has lost, and how much its members differ. The model is not changed.

    The figures are computed on the model's device and read in one transfer, so that the CPU waits for a GPU only once.

    >>> from counterpoint.nn import measure_health, resnet
    >>> health = measure_health(resnet(num_classes=10, num_members=4, width=4, init_std=0.5))
    >>> 0.4 < health.spread_r < 0.6  # r and s begin init_std apart
    True
    """
    norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
    layers = [m for m in model.modules() if isinstance(m, MemberLayer)]
    scales: list[Tensor] = [norm.weight for norm in norms if norm.weight is not None]
    below_eps = [norm.running_var < norm.eps for norm in norms if norm.running_var is not None]
    figures: dict[str, Tensor] = {}
    if below_eps:
        figures["below_eps"] = torch.cat(below_eps).sum()
    if scales:
        figures["dead_scales"] = (torch.cat(scales).abs() < DEAD_BELOW).sum()
    if any(layer.num_members > 1 for layer in layers):
        figures["spread_r"] = _spread([layer.r for layer in layers])
        figures["spread_s"] = _spread([layer.s for layer in layers])
    values = _read(figures)
    return Health(
        channels=sum(norm.num_features for norm in norms),
        below_eps=int(values.get("below_eps", 0)),
        dead_scales=int(values.get("dead_scales", 0)),
        spread_r=values.get("spread_r"),
        spread_s=values.get("spread_s"),
    )


def _spread(factors_MC: Sequence[Tensor]) -> Tensor:
    return torch.cat(list(factors_MC), dim=1).double().var(dim=0).mean().sqrt()


def _read(figures: Mapping[str, Tensor]) -> dict[str, float]:
    """The figures that are finite, since JSON has no other numbers. That a training diverged is reported elsewhere."""
    if not figures:
        return {}
    values = torch.stack([figure.double() for figure in figures.values()]).tolist()
    return {name: value for name, value in zip(figures, values, strict=True) if math.isfinite(value)}
