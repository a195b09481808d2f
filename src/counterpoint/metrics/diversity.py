"""How much the members of an ensemble differ."""

from itertools import combinations

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import InputError
from counterpoint.metrics.checks import probabilities


def disagreement(probs_MNK: ArrayLike) -> float:
    """The share of images on which two members predict different classes, mean over all pairs of members."""
    predicted_MN = probabilities(probs_MNK, "probs_MNK", ndim=3).argmax(axis=2)
    if len(predicted_MN) < 2:
        raise InputError("probs_MNK has one member; disagreement needs at least two")
    return float(np.mean([(one != other).mean() for one, other in combinations(predicted_MN, 2)]))
