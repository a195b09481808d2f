"""Scores of one predictor: the probabilities of N images over K classes against their labels."""

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.metrics.checks import Floats, Integers, class_labels, probabilities

# A class of float32 probability 0 would make the NLL infinite; it counts as the smallest normal float32, 87.3 nats.
_SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)


def error(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """The share of images whose most probable class (the first of equals) is not the label."""
    probs, labels = _checked(probs_NK, labels_N)
    return float((probs.argmax(axis=1) != labels).mean())


def nll(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """Negative log-likelihood: −log of the label's probability in nats, mean over images."""
    probs, labels = _checked(probs_NK, labels_N)
    of_label_N = np.maximum(probs[np.arange(len(labels)), labels], _SMALLEST_PROBABILITY)
    # log(1 / p), not −log(p), so that a sure, right prediction gives 0.0, not −0.0.
    return float(np.log(1 / of_label_N).mean())


def brier(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """Brier score: squared error summed over the classes (Brier 1950: 0 to 2), mean over images."""
    probs, labels = _checked(probs_NK, labels_N)
    one_hot_NK = np.eye(probs.shape[1])[labels]
    return float(((probs - one_hot_NK) ** 2).sum(axis=1).mean())


def _checked(probs_NK: ArrayLike, labels_N: ArrayLike) -> tuple[Floats, Integers]:
    probs = probabilities(probs_NK, "probs_NK", ndim=2)
    return probs, class_labels(labels_N, "labels_N", *probs.shape)
