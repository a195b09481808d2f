"""From the members' logits to probabilities with a recalibration, whose temperature may follow signals of the image."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_softmax, logsumexp, softmax, xlogy

from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores, image_scores
from counterpoint.metrics.checks import Floats, Integers, finite
from counterpoint.metrics.groups import groups_of
from counterpoint.records.recalibrated import Recalibration, Signal

_ROUNDING = 1e-12

Signals = dict[Signal, Floats]
"""What an ensemble itself shows about each image: how unsure its members are, and how much they differ."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """The members' logits of images, and their labels."""

    logits_MNK: Floats
    labels_N: Integers
    groups_N: Integers | None = None
    """Which images belong together: they have equal numbers. None where there are no groups."""

    def __len__(self) -> int:
        return len(self.labels_N)

    @property
    def draw_N(self) -> Integers:  # noqa: N802 (the shape is part of the name)
        """Each image's draw, numbered from 0: that of its group, or its own."""
        groups = groups_of(self.groups_N, len(self))
        return np.arange(len(self)) if groups is None else groups.group_N

    @property
    def draws(self) -> int:
        return int(self.draw_N.max()) + 1

    @cached_property
    def signals(self) -> "Signals":
        return member_signals(self.logits_MNK)

    @cached_property
    def predicted_N(self) -> Integers:  # noqa: N802
        """The class that the ensemble predicts of each image, without a recalibration."""
        return np.asarray(softmax(self.logits_MNK, axis=2)).mean(axis=0).argmax(axis=1)

    def in_two_parts(self, draws: int) -> tuple[Integers, Integers]:
        """The images of so many draws at random, and all others. Images that belong together are in one part."""
        order = np.random.default_rng(0).permutation(self.draws)
        is_first_N = np.isin(self.draw_N, order[:draws])
        return np.flatnonzero(is_first_N), np.flatnonzero(~is_first_N)

    def select(self, images: Integers | slice) -> "Labelled":
        groups_N = None if self.groups_N is None else self.groups_N[images]
        return Labelled(self.logits_MNK[:, images], self.labels_N[images], groups_N)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The ensemble's probabilities, and the members' where they were scaled."""

    ensemble_NK: Floats
    members_MNK: Floats | None


def apply(recalibration: Recalibration, logits_MNK: ArrayLike, signals: Signals | None = None) -> Probabilities:
    """The probabilities of new images with a recalibration that was fitted before.

    `recalibrate_run` and `threshold_run` return recalibrations. `logits_MNK` are the members' logits; of a single
    network, `logits[None]`. The result has the ensemble's probabilities, `ensemble_NK`, and the members',
    `members_MNK`. These are None where the temperature is applied after averaging. `signals` are
    `member_signals(logits_MNK)`, for a caller who has them.

    >>> import numpy as np
    >>> from counterpoint import evaluate_logits, recalibrate_run
    >>> from counterpoint.recalibration.apply import apply
    >>> labels = np.arange(200) % 2
    >>> logits = 4 * np.eye(2)[np.where(np.arange(200) % 5, labels, 1 - labels)]  # 98 % sure, 80 % right
    >>> validation = {"validation_logits": logits[::-1], "validation_labels": labels[::-1]}
    >>> _ = evaluate_logits({"logits": logits, "labels": labels, **validation}, "runs/theirs")
    >>> found = recalibrate_run("runs/theirs")
    >>> apply(found.ways[found.best].recalibration, [[[4, 0], [0, 4], [0, 0]]]).ensemble_NK.round(2).tolist()
    [[0.8, 0.2], [0.2, 0.8], [0.5, 0.5]]
    """
    logits = finite(logits_MNK, "logits_MNK", ndim=3)
    temperatures_TN = image_temperatures(recalibration, logits, signals)
    probs_TNK = np.asarray(softmax(what_is_scaled(logits, recalibration.acts) / temperatures_TN[:, :, None], axis=2))
    return Probabilities(probs_TNK.mean(axis=0), None if recalibration.acts == "after" else probs_TNK)


def recalibrated_scores(recalibration: Recalibration, images: Labelled) -> ImageScores:
    """What the ensemble's recalibrated probabilities score on each image."""
    return image_scores(apply(recalibration, images.logits_MNK).ensemble_NK, images.labels_N, images.groups_N)


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


def what_is_scaled(logits_MNK: Floats, acts: str) -> Floats:
    """The logits; for "after", the log of the mean probability, as if it were the logits of a single member."""
    if acts != "after":
        return logits_MNK
    return np.asarray(logsumexp(log_softmax(logits_MNK, axis=2), axis=0, keepdims=True) - np.log(len(logits_MNK)))


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
