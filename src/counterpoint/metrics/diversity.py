"""How much the members of an ensemble differ."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, probabilities
from counterpoint.metrics.scores import SMALLEST_PROBABILITY

_ROUNDING = 1e-12
_BLOCK = 1 << 18  # probabilities


def disagreement(probs_MNK: ArrayLike) -> float:
    """The share of images on which two members predict different classes, averaged over all pairs of members.

    `probs_MNK` holds the probabilities of M members, at least two, for N images and K classes.

    >>> from counterpoint.metrics import disagreement
    >>> disagreement([[[0.9, 0.1], [0.6, 0.4]], [[0.8, 0.2], [0.3, 0.7]]])  # two members, two images, two classes
    0.5
    """
    return disagreement_of_checked(_several_members(probs_MNK))


def disagreement_of_checked(members_MNK: Floats) -> float:
    predicted_MN = members_MNK.argmax(axis=2)
    return float(np.mean([(first_N != second_N).mean() for first_N, second_N in combinations(predicted_MN, 2)]))


def mean_pairwise_kl(probs_MNK: ArrayLike) -> float:
    """The KL divergence between two members in nats, averaged over images and ordered pairs of members.

    `probs_MNK` holds the probabilities of M members, at least two, for N images and K classes. Probabilities are
    clipped as in `nll`.

    >>> from counterpoint.metrics import mean_pairwise_kl
    >>> round(mean_pairwise_kl([[[0.9, 0.1]], [[0.5, 0.5]]]), 3)
    0.439
    """
    return kl_of_checked(_several_members(probs_MNK))


def kl_of_checked(members_MNK: Floats) -> float:
    """In blocks of images whose arrays fit into the processor's cache."""
    members, images, classes = members_MNK.shape
    pairs = [*combinations(range(members), 2)]
    both_orders_PN = np.empty((len(pairs), images))
    step = max(1, _BLOCK // (members * classes))
    for start in range(0, images, step):
        block = slice(start, start + step)
        clipped_MBK = np.maximum(members_MNK[:, block], SMALLEST_PROBABILITY)
        logs_MBK = np.log(clipped_MBK)
        for pair, (p, q) in enumerate(pairs):
            # Both orders at once: KL(p ‖ q) + KL(q ‖ p) = Σ (p − q) · (log p − log q).
            both_BK = (clipped_MBK[p] - clipped_MBK[q]) * (logs_MBK[p] - logs_MBK[q])
            both_orders_PN[pair, block] = both_BK.sum(axis=1)
    return float(np.mean([both_orders_N.mean() for both_orders_N in both_orders_PN]) / 2)


def entropy_of_mean(probs_MNK: ArrayLike) -> Floats:
    """Each image's entropy of the members' mean prediction, in nats: how unsure the ensemble is, over all classes.

    `probs_MNK` holds the probabilities of M members, at least one, for N images and K classes. The entropy lies between
    0 and log K.

    >>> from counterpoint.metrics import entropy_of_mean
    >>> entropy_of_mean([[[1.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]]).round(3).tolist()
    [0.0, 0.693]
    """
    return _entropy(probabilities(probs_MNK, "probs_MNK", ndim=3).mean(axis=0))


def mutual_information(probs_MNK: ArrayLike) -> Floats:
    """Each image's mutual information between member and class, in nats: how far the members' predictions differ.

    It is the entropy of the members' mean prediction minus the mean of their entropies. It is 0 if all members predict
    the same probabilities, however unsure they are. `probs_MNK` is as in `disagreement`.

    >>> from counterpoint.metrics import mutual_information
    >>> mutual_information([[[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]]).round(3).tolist()
    [0.0, 0.693]
    """
    members_MNK = _several_members(probs_MNK)
    apart_N = _entropy(members_MNK.mean(axis=0)) - _entropy(members_MNK).mean(axis=0)
    # Members that predict the same tie. The rounding error of the two entropies must not put them in some order.
    return np.where(apart_N > _ROUNDING, apart_N, 0.0)


def _entropy(probs: Floats) -> Floats:
    """Of the distributions over the last axis. 0 · log 0 is 0."""
    return -np.asarray(xlogy(probs, probs)).sum(axis=-1) + 0.0


def _several_members(probs_MNK: ArrayLike) -> Floats:
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    if len(members_MNK) < 2:
        raise InputError("probs_MNK has one member; members can only be compared where there are at least two")
    return members_MNK
