"""All metrics of an ensemble and its members on one set of images, as a record for results.json.

Figures are fractions, and their names carry their estimator.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.metrics.calibration import Binning, overconfidence, reliability_bins
from counterpoint.metrics.checks import Floats, Integers, class_labels, probabilities
from counterpoint.metrics.debiased import ece_debiased, ece_rms_debiased
from counterpoint.metrics.diversity import disagreement_of_checked, kl_of_checked
from counterpoint.metrics.floor import draws_of_bins, noise_floor
from counterpoint.metrics.groups import are_enough
from counterpoint.metrics.intervals import Interval
from counterpoint.metrics.scores import ImageScores, checked_groups, scores_of_checked
from counterpoint.metrics.selective import aurc, risk_coverage
from counterpoint.records.figures import (
    Bin,
    ClassFigures,
    Curve,
    Estimate,
    Estimates,
    Figures,
    Honest,
    Reliability,
    Summary,
)

_BINNINGS: tuple[Binning, ...] = get_args(Binning)
_CURVE_POINTS = 100


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


def score_set(probs_MNK: ArrayLike, labels_N: ArrayLike, groups: ArrayLike | None = None) -> SetScores:
    """Everything that the figures of a set of images are computed from.

    `probs_MNK` holds the probabilities of M members for N images and K classes, and `labels_N` the class numbers.
    `groups` is as in `image_scores`.

    >>> from counterpoint.metrics import score_set
    >>> scores = score_set([[[0.9, 0.1]], [[0.3, 0.7]]], [0])  # two members, one image
    >>> scores.ensemble.confidence.round(2).tolist(), scores.disagreement
    ([0.6], 1.0)
    """
    members_MNK = probabilities(probs_MNK, "probs_MNK", ndim=3)
    labels = class_labels(labels_N, "labels_N", *members_MNK.shape[1:])
    group_N = checked_groups(groups, len(labels))
    several = len(members_MNK) > 1
    return SetScores(
        scores_of_checked(members_MNK.mean(axis=0), labels, group_N),
        tuple(scores_of_checked(member_NK, labels, group_N) for member_NK in members_MNK),
        disagreement_of_checked(members_MNK) if several else None,
        kl_of_checked(members_MNK) if several else None,
    )


def summarise(scores: SetScores, *, honest_members: bool = True) -> Summary:
    """The metrics of the ensemble, of each member, and between members.

    With `honest_members=False` the members' floors and intervals, which are most of the work, are left out. Where the
    images are of fewer than ten groups, there are none at all.

    >>> from counterpoint.metrics import score_set, summarise
    >>> found = summarise(score_set([[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.7, 0.3]]], [0, 1]))
    >>> found.ensemble.error, [member.error for member in found.members]
    (0.0, [0.0, 0.5])
    """
    return Summary(
        ensemble=figures(scores.ensemble),
        members=tuple(figures(member) for member in scores.members),
        disagreement=scores.disagreement,
        pairwise_kl=scores.pairwise_kl,
        honest=Honest(
            honest(scores.ensemble),
            tuple(honest(member) for member in scores.members) if honest_members else (),
        )
        if are_enough(scores.ensemble.groups)
        else None,
        reliability=reliability(scores.ensemble),
    )


def figures(scores: ImageScores) -> Figures:
    """Every metric of one predictor on one set of images."""
    confidence, correct = scores.confidence, scores.correct
    width, mass = (reliability_bins(confidence, correct, 15, binning) for binning in _BINNINGS)
    return Figures(
        error=float((~correct).mean()),
        nll=float(scores.nll.mean()),
        brier=float(scores.brier.mean()),
        ece_width15=width.ece,
        ece_rms_width15=width.ece_rms,
        ece_mass15=mass.ece,
        ece_rms_mass15=mass.ece_rms,
        mean_confidence=float(confidence.mean()),
        overconfidence=overconfidence(confidence, correct),
        aurc=aurc(confidence, correct),
    )


def class_figures(probs_NK: Floats, labels_N: Integers, names: Sequence[str]) -> Iterator[ClassFigures]:
    """Which classes are mistaken for which, and how sure each prediction is. `names` are those of the K classes."""
    predicted_N, confidence_N = probs_NK.argmax(axis=1), probs_NK.max(axis=1)
    confused_KK = np.zeros((len(names), len(names)), dtype=int)  # rows are labels, columns are predictions
    np.add.at(confused_KK, (labels_N, predicted_N), 1)
    for k, name in enumerate(names):
        wrong_K = np.where(np.arange(len(names)) == k, 0, confused_KK[k])
        most = int(wrong_K.argmax())
        as_k = predicted_N == k
        yield ClassFigures(
            name=name,
            images=int(confused_KK[k].sum()),
            wrong=int(wrong_K.sum()),
            taken_for=names[most] if wrong_K[most] else None,
            taken=int(wrong_K[most]),
            predicted=int(as_k.sum()),
            predicted_right=int(confused_KK[k, k]),
            predicted_confidence=float(confidence_N[as_k].mean()) if as_k.any() else None,
        )


def honest(scores: ImageScores) -> Estimates:
    """For each calibration error: the noise floor, the excess over it, and the debiased estimate."""
    rows = {}
    for binning in _BINNINGS:
        seen = (scores.confidence, scores.correct, 15, binning)
        floor = noise_floor(*seen, groups=scores.group_N)
        debiased, rms_debiased = ece_debiased(*seen, scores.group_N), ece_rms_debiased(*seen, scores.group_N)
        rows[f"ece_{binning}15"] = _estimate(floor.ece_mean, floor.ece_excess, debiased)
        rows[f"ece_rms_{binning}15"] = _estimate(floor.ece_rms_mean, floor.ece_rms_excess, rms_debiased)
    return cast(Estimates, rows)


def floors(scores: ImageScores, images: int) -> dict[str, float]:
    """The noise floor of each calibration error, named after it. None where the images are of fewer than ten groups.

    The scores are of so many images in each of several cells, one cell after another.
    """
    in_groups = scores.select(np.arange(images)).groups
    if not are_enough(in_groups):
        return {}
    image_N, group_N = np.arange(len(scores)) % images, None if in_groups is None else scores.group_N
    rows = {}
    for binning in _BINNINGS:
        floor = noise_floor(scores.confidence, scores.correct, 15, binning, images=image_N, groups=group_N)
        rows[f"ece_{binning}15_floor"] = floor.ece_mean
        rows[f"ece_rms_{binning}15_floor"] = floor.ece_rms_mean
    return rows


def risk_coverage_points(scores: ImageScores) -> Curve:
    """The risk–coverage curve at each hundredth of the images, rounded up to whole images."""
    curve = risk_coverage(scores.confidence, scores.correct)
    hundredths = np.arange(1, _CURVE_POINTS + 1)
    kept = np.unique(-(-hundredths * len(scores) // _CURVE_POINTS))
    return Curve(tuple(curve.coverage[kept - 1].tolist()), tuple(curve.risk[kept - 1].tolist()))


def _estimate(floor: float, excess: float, debiased: Interval) -> Estimate:
    return Estimate(floor, excess, debiased.value, debiased.low, debiased.high)


def reliability(scores: ImageScores) -> Reliability:
    """The bins of one predictor on one set of images."""
    return Reliability(*(equal_bins(scores, binning) for binning in _BINNINGS))


def equal_bins(scores: ImageScores, binning: Binning) -> tuple[Bin, ...]:
    """The 15 bins, without those that are empty."""
    table = reliability_bins(scores.confidence, scores.correct, bins=15, binning=binning)
    columns = (table.low, table.high, table.count, table.confidence, table.accuracy)
    draws: list[float | None] = [None] * len(table.count)
    if scores.groups is not None:
        draws = draws_of_bins(table, scores).tolist() if are_enough(scores.groups) else [0.0] * len(table.count)
    return tuple(Bin(*row) for row in zip(*(column.tolist() for column in columns), draws, strict=True))
