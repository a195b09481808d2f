"""What an ensemble itself shows about an image: how unsure its members are, and how much they differ."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, xlogy

from counterpoint.metrics.checks import Floats, finite
from counterpoint.records.recalibrated import Signal

_ROUNDING = 1e-12

Signals = dict[Signal, Floats]
"""Each signal of each image."""


def member_signals(logits_MNK: ArrayLike) -> Signals:
    """Each signal of each image, between 0 and 1: shares of log K, the entropy of a uniform distribution.

    "entropy" is the mean entropy of the members. "disagreement" is the entropy of their mean prediction minus that mean
    entropy. It is 0 if all members predict the same, and for a single network.
    """
    log_probs_MNK = log_softmax(finite(logits_MNK, "logits_MNK", ndim=3), axis=2)
    probs_MNK = np.exp(log_probs_MNK)
    mean_NK = probs_MNK.mean(axis=0)
    most = np.log(mean_NK.shape[1])
    entropy_N = -(probs_MNK * log_probs_MNK).sum(axis=2).mean(axis=0) / most
    of_mean_N = -xlogy(mean_NK, mean_NK).sum(axis=1) / most
    apart_N = of_mean_N - entropy_N
    return {
        "entropy": np.minimum(entropy_N, 1.0),
        "disagreement": np.where(apart_N > _ROUNDING, apart_N, 0.0),
    }
