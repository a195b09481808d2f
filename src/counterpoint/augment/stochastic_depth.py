"""Stochastic depth: in training, an image skips a residual branch with its member's drop rate (docs/paper.md, 18)."""

import torch
from torch import Tensor


def branch_factors(uniform_LMB: Tensor, drop_rate_MB: Tensor, *, rescale: bool = True) -> Tensor:
    """What each of L residual branches is multiplied by for each view (L, M, B): 0 if dropped, 1/(1−rate) if kept.

    The factor 1/(1−rate) keeps the branch's expectation. Without `rescale` a kept branch is multiplied by 1.
    """
    kept_MB = 1 / (1 - drop_rate_MB) if rescale else torch.ones_like(drop_rate_MB)
    return torch.where(uniform_LMB < drop_rate_MB, 0.0, kept_MB).float()
