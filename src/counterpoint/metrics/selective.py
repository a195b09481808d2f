"""Two uses of confidence: to keep only the predictions that are likely to be right, and to notice outside images, which
are images of none of the classes.

Known images are the positives: a true positive is a known image that is accepted, and a false positive is an outside
image that is accepted. To be accepted, an image needs the threshold's confidence or more.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, confidence_and_correct, finite
from counterpoint.metrics.groups import enough_groups, moved_by, students
from counterpoint.metrics.intervals import TAIL, Interval

_PRIOR_IMAGES = 2
"""`python benchmarks/auroc_coverage.py` shows what an interval covers with this many."""


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """`risk[k − 1]` is the error of the k most confident of N images, `coverage[k − 1]` is k / N.

    If only some of several equally confident images are kept, the risk is the mean over all ways to choose them.

    >>> from counterpoint.metrics import risk_coverage
    >>> risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, True, False]).coverage.tolist()
    [0.25, 0.5, 0.75, 1.0]
    """

    coverage: Floats
    risk: Floats

    @property
    def area(self) -> float:
        """AURC: the mean risk over all coverages 1/N … 1 (Geifman, Uziel & El-Yaniv 2019)."""
        return float(self.risk.mean())


def risk_coverage(confidence: ArrayLike, correct: ArrayLike) -> RiskCoverage:
    """The error of the most confident predictions, for every share of predictions that is kept.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image.

    >>> from counterpoint.metrics import risk_coverage
    >>> risk_coverage([0.9, 0.8, 0.7, 0.6], [True, True, True, False]).risk.tolist()  # one kept, two kept, …
    [0.0, 0.0, 0.0, 0.25]
    """
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    wrong_N = 1 - correct_N
    # Each of several equally confident images gets the mean error of all of them, so their order makes no difference.
    _, group_N, size = np.unique(-confidence_N, return_inverse=True, return_counts=True)
    errors_N = np.cumsum(np.repeat(np.bincount(group_N, wrong_N) / size, size))
    kept_N = np.arange(1, len(wrong_N) + 1)
    return RiskCoverage(coverage=kept_N / len(wrong_N), risk=errors_N / kept_N)


def aurc(confidence: ArrayLike, correct: ArrayLike) -> float:
    """The area under the risk–coverage curve: the mean error over all shares that are kept. Lower is better.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image.

    >>> from counterpoint.metrics import aurc
    >>> aurc([0.9, 0.8, 0.7, 0.6], [True, True, True, False])
    0.0625
    """
    return risk_coverage(confidence, correct).area


def ood_auroc(confidence_in: ArrayLike, confidence_out: ArrayLike) -> float:
    """How well confidence separates known images from outside images: 1 is perfect, 0.5 is chance.

    `confidence_in` (N,) belongs to images of the classes, and `confidence_out` (any number of images) to images of none
    of them. The result is the chance that one of the former has more confidence than one of the latter; a tie counts
    half. In place of confidence it takes any number that is higher for known images, such as minus the entropy.

    >>> from counterpoint.metrics import ood_auroc
    >>> ood_auroc(confidence_in=[0.9, 0.8], confidence_out=[0.85, 0.3])
    0.75
    """
    return float(_share_below(*_both(confidence_in, confidence_out)).mean())


def ood_auroc_interval(
    confidence_in: ArrayLike, confidence_out: ArrayLike, groups_in: ArrayLike | None = None
) -> Interval:
    """The AUROC of `ood_auroc` with its 95 % interval over images, known and outside ones.

    It is Wilson's score interval of a share, of as many independent images as give the variance of DeLong, DeLong &
    Clarke-Pearson 1988. Near 1 only a few images are out of order, and they tell little about that variance. So it is
    moved towards the largest one that the AUROC allows, as if two more images had shown that. Without this the interval
    would be too short near 1, and of length 0 where the two kinds are fully apart.

    `groups_in` says which known images belong together, such as those of one patient, by equal whole numbers. They then
    count as fewer images, by the design effect of the mean. Fewer than ten groups are refused.

    >>> from counterpoint.metrics import ood_auroc_interval
    >>> interval = ood_auroc_interval([0.9, 0.8, 0.7, 0.6], [0.65, 0.5, 0.4, 0.3])
    >>> interval.value, round(interval.low, 2), round(interval.high, 2)
    (0.9375, 0.45, 1.0)
    """
    placements = _Placements.of(*_both(confidence_in, confidence_out))
    known, outside = float(len(placements.known_N)), len(placements.outside_N)
    value = float(placements.known_N.mean())
    if (together := enough_groups(groups_in, len(placements.known_N))) is not None:
        known /= together.images_per_draw(placements.known_N, _out_of_order(placements.known_N, value))
    shares = [_share_of_most_variance(placed, value) for placed in (placements.known_N, placements.outside_N)]
    # The AUROC is the mean over all ways to form min(known, outside) independent pairs. So its variance is at most that
    # of one of these ways.
    images = 1 / min(shares[0] / known + shares[1] / outside, 1 / min(known, outside))
    pull = ndtri(1 - TAIL) ** 2 / images
    centre = (value + pull / 2) / (1 + pull)
    margin = np.sqrt(pull * value * (1 - value) + pull**2 / 4) / (1 + pull)
    return Interval(value, max(float(centre - margin), 0.0), min(float(centre + margin), 1.0))


def ood_auroc_difference(
    ours_in: ArrayLike,
    ours_out: ArrayLike,
    other_in: ArrayLike,
    other_out: ArrayLike,
    groups_in: ArrayLike | None = None,
) -> Interval:
    """The difference of two models' AUROCs, ours − other, with its 95 % interval over images, known and outside ones.

    `ours_in` and `ours_out` are the arguments of `ood_auroc` for our model, `other_in` and `other_out` for the other
    one. Entry i of both must be of the same image.

    The variance is that of DeLong, DeLong & Clarke-Pearson 1988 for two models on the same images. Of each kind, one
    image more counts that only one of the models has in order. Without it the interval would be too short where the
    models differ on few images, and of length 0 where they differ on none. With `groups_in`, as in
    `ood_auroc_interval`, a group of known images is one draw.

    >>> from counterpoint.metrics import ood_auroc_difference
    >>> known, sure, unsure = [0.9, 0.8, 0.7, 0.6], [0.85, 0.75, 0.4, 0.3], [0.4, 0.3, 0.2, 0.1]
    >>> ood_auroc_difference(known, unsure, known, sure).value
    0.3125
    """
    ours, other = (_Placements.of(*_both(*pair)) for pair in ((ours_in, ours_out), (other_in, other_out)))
    together = enough_groups(groups_in, len(ours.known_N))
    variance, reach = 0.0, float(ndtri(1 - TAIL))
    for kind, ours_N, other_N in (
        ("known", ours.known_N, other.known_N),
        ("outside", ours.outside_N, other.outside_N),
    ):
        if len(ours_N) != len(other_N):
            raise InputError(
                f"there are {len(ours_N)} and {len(other_N)} {kind} images; both models need the same ones"
            )
        if kind == "known" and together is not None:
            apart_N, reach = ours_N - other_N, students(len(together))
            more = together.images_per_draw(apart_N, apart_N != 0) / len(ours_N)
            variance += float((moved_by(together.sums(apart_N), together.sizes_G) ** 2).sum()) + more**2
        else:
            variance += float(((ours_N - other_N).var() * len(ours_N) + 1) / len(ours_N) ** 2)
    value = float(ours.known_N.mean() - other.known_N.mean())
    margin = float(reach * np.sqrt(variance))
    return Interval(value, max(value - margin, -1.0), min(value + margin, 1.0))


def ood_fpr(confidence_in: ArrayLike, confidence_out: ArrayLike, tpr: float = 0.95) -> float:
    """The share of outside images that are accepted if the share `tpr` of the known images is to be. Lower is better.

    The arguments are as in `ood_auroc`. The threshold is the highest value that at least that share of the known images
    reaches. An image that ties with it is accepted.

    >>> from counterpoint.metrics import ood_fpr
    >>> ood_fpr(confidence_in=[0.9, 0.8, 0.7, 0.6], confidence_out=[0.75, 0.65, 0.2, 0.1], tpr=0.75)
    0.25
    """
    if not 0 < tpr <= 1:
        raise InputError(f"tpr is {tpr}; it must be above 0 and at most 1, the share of known images to accept")
    known_N, outside = _both(confidence_in, confidence_out)
    # The share k / N is rounded as the literal is, so that 57 of 60 images are 0.95 exactly.
    accepted = int(np.searchsorted(np.arange(1, len(known_N) + 1) / len(known_N), tpr)) + 1
    threshold = np.sort(known_N)[-accepted]
    return float((outside >= threshold).mean())


@dataclass(frozen=True, eq=False)
class _Placements:
    """For each image the share of the other kind's images that it is in the right order with; a tie counts half."""

    known_N: Floats
    outside_N: Floats

    @classmethod
    def of(cls, known_N: Floats, outside_N: Floats) -> "_Placements":
        return cls(_share_below(known_N, outside_N), 1 - _share_below(outside_N, known_N))


def _share_below(values: Floats, others: Floats) -> Floats:
    """For each value the share of the others that are lower. Of those that equal it, half count: it has their average
    rank.
    """
    ordered = np.sort(others)
    below, not_above = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return (below + not_above) / (2 * len(others))


def _share_of_most_variance(placed: Floats, value: float) -> float:
    """The variance of the placements of one kind's images, as a share of the largest that placements with this mean can
    have: value · (1 − value), if each is 0 or 1.

    Only images that are out of order tell about it. `_PRIOR_IMAGES` are added to them that show the largest.
    """
    largest = value * (1 - value)
    out_of_order = int(_out_of_order(placed, value).sum())
    share = min(float(placed.var(ddof=1)) / largest, 1.0) if largest and len(placed) > 1 else 1.0
    return (out_of_order * share + _PRIOR_IMAGES) / (out_of_order + _PRIOR_IMAGES)


def _out_of_order(placed: Floats, value: float) -> NDArray[np.bool_]:
    """The rarer images: those that are not on the side where most are."""
    return np.asarray((placed < 1) if value >= 0.5 else (placed > 0))


def _both(confidence_in: ArrayLike, confidence_out: ArrayLike) -> tuple[Floats, Floats]:
    return finite(confidence_in, "confidence_in", ndim=1), finite(confidence_out, "confidence_out", ndim=1)
