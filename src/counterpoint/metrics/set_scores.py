"""The scores of an ensemble and its members on one set of images, from which all of the set's figures are computed."""

from dataclasses import dataclass

from numpy.typing import ArrayLike

from counterpoint.metrics.checks import class_labels, probabilities
from counterpoint.metrics.diversity import disagreement_of_checked, kl_of_checked
from counterpoint.metrics.scores import ImageScores, scores_of_checked


@dataclass(frozen=True, eq=False)
class SetScores:
    """An ensemble on one set of images: its scores, the scores of each member, and how much the members differ.

    >>> from counterpoint.metrics import score_set
    >>> scores = score_set([[[0.9, 0.1]], [[0.3, 0.7]]], [0])
    >>> [bool(member.correct[0]) for member in scores.members]
    [True, False]
    """

    ensemble: ImageScores  # of the mean probability over the members
    members: tuple[ImageScores, ...]
    disagreement: float | None  # None for one network
    pairwise_kl: float | None


def score_set(probs_MNK: ArrayLike, labels_N: ArrayLike) -> SetScores:
    """Everything that the figures of a set of images are computed from.

    `probs_MNK` holds the probabilities of M members for N images and K classes, and `labels_N` the class numbers.

    >>> from counterpoint.metrics import score_set
    >>> scores = score_set([[[0.9, 0.1]], [[0.3, 0.7]]], [0])  # two members, one image
    >>> scores.ensemble.confidence.round(2).tolist(), scores.disagreement
    ([0.6], 1.0)
    """
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    labels = class_labels(labels_N, "labels_N", *members_MNK.shape[1:])
    several = len(members_MNK) > 1
    return SetScores(
        scores_of_checked(members_MNK.mean(axis=0), labels),
        tuple(scores_of_checked(member_NK, labels) for member_NK in members_MNK),
        disagreement_of_checked(members_MNK) if several else None,
        kl_of_checked(members_MNK) if several else None,
    )
