"""A recalibration as operations of torch, so that it is part of what is exported.

`recalibration.apply` is the same in float64 with NumPy, and what it is checked against.
"""

import math

import torch
from torch import Tensor

from counterpoint.records.recalibrated import Recalibration, Signal

# Its exp is a normal float32, and so is the exp of its negative. A log temperature beyond it makes no difference any
# more: all classes are equally likely, or one has all the probability.
_MOST = 80.0
_TINY = torch.finfo(torch.float32).tiny


def recalibrated_probs(recalibration: Recalibration, logits_MNK: Tensor) -> tuple[Tensor, Tensor]:
    """The ensemble's probabilities (N, K) and the members' (M, N, K), as `counterpoint predict` has them."""
    after = recalibration.acts == "after"
    scaled_TNK = _log_mean(logits_MNK)[None] if after else logits_MNK
    probs_TNK = _softened(scaled_TNK, _log_temperatures(recalibration, logits_MNK))
    # A temperature after averaging is not the members' own.
    return probs_TNK.mean(dim=0), logits_MNK.softmax(dim=2) if after else probs_TNK


def _log_temperatures(recalibration: Recalibration, logits_MNK: Tensor) -> Tensor:
    """One temperature per member or one for all, and one per image if it depends on the image: (M or 1, N or 1)."""
    values = [parameter.value for parameter in recalibration.log_temperatures]
    log_TN = torch.stack([logits_MNK.new_full((1,), value) for value in values])
    for one in recalibration.slopes:
        log_TN = log_TN + one.slope.value * _signal(one.signal, logits_MNK)
    return log_TN.clamp(-_MOST, _MOST)


def _softened(logits_TNK: Tensor, log_temperatures_TN: Tensor) -> Tensor:
    """The highest logit becomes 0 first, which stays 0 for any temperature: nothing overflows."""
    below_TNK = logits_TNK - logits_TNK.amax(dim=2, keepdim=True)
    return (below_TNK * torch.exp(-log_temperatures_TN)[:, :, None]).softmax(dim=2)


def _log_mean(logits_MNK: Tensor) -> Tensor:
    """The log of the members' mean probability (N, K)."""
    log_probs_MNK = logits_MNK.log_softmax(dim=2)
    highest_NK = log_probs_MNK.amax(dim=0)
    return highest_NK + (log_probs_MNK - highest_NK).exp().mean(dim=0).log()


def _signal(name: Signal, logits_MNK: Tensor) -> Tensor:
    """`recalibration.apply` says what the signals (N) are."""
    log_probs_MNK = logits_MNK.log_softmax(dim=2)
    probs_MNK = log_probs_MNK.exp()
    most = math.log(logits_MNK.shape[2])
    entropy_N = -(probs_MNK * log_probs_MNK).sum(dim=2).mean(dim=0) / most
    if name == "entropy":
        return entropy_N.clamp(max=1.0)
    mean_NK = probs_MNK.mean(dim=0)
    of_mean_N = -(mean_NK * mean_NK.clamp(min=_TINY).log()).sum(dim=1) / most
    return (of_mean_N - entropy_N).clamp(min=0.0)
