"""Stochastic depth: in training, an image skips a residual branch with its member's drop rate (SPEC D9)."""

from collections.abc import Sequence

import torch
from torch import Tensor

from counterpoint.errors import InputError


def check_drop_rates(drop_rates: Sequence[float], num_members: int) -> None:
    """One rate a member, each in [0, 1)."""
    if len(drop_rates) != num_members:
        raise InputError(
            f"drop_rates has {len(drop_rates)} entries {list(drop_rates)}; give one for each of {num_members} members"
        )
    for rate in drop_rates:
        if not 0 <= rate < 1:
            raise InputError(f"drop rate {rate} is outside [0, 1)")


def branch_factors(uniform_LMB: Tensor, drop_rate_MB: Tensor, *, rescale: bool = True) -> Tensor:
    """What each of L residual branches is multiplied by for each view (L, M, B): 0 if dropped, 1/(1−rate) if kept.

    That scaling keeps the branch's expectation. Without `rescale` a kept branch is as it is, in evaluation too.
    """
    kept_MB = 1 / (1 - drop_rate_MB) if rescale else torch.ones_like(drop_rate_MB)
    return torch.where(uniform_LMB < drop_rate_MB, 0.0, kept_MB).float()
