"""Probabilities from logits, with a recalibration."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import softmax

from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores, image_scores
from counterpoint.metrics.checks import Floats, finite
from counterpoint.recalibration.fit import Labelled, what_is_scaled
from counterpoint.recalibration.signals import Signals, member_signals
from counterpoint.records.recalibrated import Recalibration


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The ensemble's probabilities, and the members' where they were scaled."""

    ensemble_NK: Floats
    members_MNK: Floats | None


def apply(recalibration: Recalibration, logits_MNK: ArrayLike, signals: Signals | None = None) -> Probabilities:
    """The probabilities of images with the parameters that `fit` found.

    `signals` are `member_signals(logits_MNK)`, for a caller who has them.
    """
    logits = finite(logits_MNK, "logits_MNK", ndim=3)
    temperatures_TN = image_temperatures(recalibration, logits, signals)
    probs_TNK = np.asarray(softmax(what_is_scaled(logits, recalibration.acts) / temperatures_TN[:, :, None], axis=2))
    return Probabilities(probs_TNK.mean(axis=0), None if recalibration.acts == "after" else probs_TNK)


def recalibrated_scores(recalibration: Recalibration, images: Labelled) -> ImageScores:
    """What the ensemble's recalibrated probabilities score on each image."""
    return image_scores(apply(recalibration, images.logits_MNK).ensemble_NK, images.labels_N)


def image_temperatures(recalibration: Recalibration, logits_MNK: Floats, signals: Signals | None = None) -> Floats:
    """Each image's temperature: one for all members, or one per member (T, N)."""
    values = [parameter.value for parameter in recalibration.log_temperatures]
    expected = len(logits_MNK) if recalibration.acts == "per-member" else 1
    if len(values) != expected:
        raise InputError(f"the recalibration has {len(values)} temperatures, and this ensemble needs {expected}")
    log_TN = np.repeat(np.array(values)[:, None], logits_MNK.shape[1], axis=1)
    if recalibration.slopes:
        signals = member_signals(logits_MNK) if signals is None else signals
        for one in recalibration.slopes:
            log_TN += one.slope.value * signals[one.signal]
    return np.exp(log_TN)
