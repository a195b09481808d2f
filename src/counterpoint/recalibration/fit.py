"""Fit a recalibration to held-out images by NLL, in float64, with its uncertainty over images.

The NLL of a log temperature and slopes may have several minima: a grid finds their surroundings, and gradients the
lowest points. Nothing here is random.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, class_labels, finite
from counterpoint.metrics.groups import Groups, groups_of
from counterpoint.recalibration.apply import Labelled, what_is_scaled
from counterpoint.recalibration.families import Family, check_members
from counterpoint.records.recalibrated import Parameter, Recalibration, Slope

_Objective = Callable[[Floats], tuple[float, Floats]]
"""From parameters to the value and its derivatives."""

# Images that are all predicted right have no best temperature: the NLL falls with the temperature. Those of useless
# logits have none either: it falls as the temperature grows.
LOWEST, HIGHEST = np.log(0.05), np.log(20.0)
STEEPEST = 50.0
_SLOPES = (0.0, 0.4, 1.0, 2.0, 4.0, 8.0, 14.0, 25.0, STEEPEST)
_BETTER = 1e-9  # nats; two searches that end in the same minimum differ by less
_FLAT = 1e-9  # a smaller slope is one that the search left beside 0
_FEW, _FEW_OF_A_SET = 400, 40  # images: of all sets together, but so many of each
_STEP = 1e-4  # of the differences that give the second derivatives


@dataclass(frozen=True, eq=False)
class FitSet:
    """A set of images to fit on, and how much it counts. Row i of every set is the same image."""

    images: Labelled
    weight: float


def fit(family: Family, sets: Sequence[FitSet]) -> Recalibration:
    """The recalibration of least weighted NLL.

    Raises if the images do not determine one, for example if the network gets all of them right.
    """
    counting = [_checked(one) for one in sets if one.weight > 0]
    if not counting:
        raise InputError("there are no images to fit on: the weight of every set is 0")
    members = len(counting[0].images.logits_MNK)
    check_members(family, members)
    largest = max((one.images for one in counting), key=len)
    groups = groups_of(largest.groups_N, len(largest))
    if family.acts == "per-member":
        fits = [_fit([_Terms.of(family, one, slice(i, i + 1)) for one in counting], groups) for i in range(members)]
        return Recalibration(family.acts, family.images, tuple(parameters[0] for parameters in fits))
    parameters = _fit([_Terms.of(family, one) for one in counting], groups)
    slopes = tuple(Slope(name, slope) for name, slope in zip(family.signals, parameters[1:], strict=True))
    return Recalibration(family.acts, family.images, parameters[:1], slopes)


@dataclass(frozen=True, eq=False)
class _Terms:
    """One set as the fit sees it: what is scaled, less the highest of each row, and a column for each parameter."""

    below_MNK: Floats
    of_label_MN: Floats
    columns_NP: Floats
    weight: float

    @staticmethod
    def of(family: Family, source: FitSet, members: slice = slice(None)) -> "_Terms":
        logits_MNK, labels_N = source.images.logits_MNK[members], source.images.labels_N
        columns_NP = np.stack(
            [np.ones(len(labels_N)), *(source.images.signals[name] for name in family.signals)], axis=1
        )
        scaled_MNK = what_is_scaled(logits_MNK, family.acts)
        # No temperature changes which is the highest, so the softmax need not look for it again at each one.
        below_MNK = scaled_MNK - scaled_MNK.max(axis=2, keepdims=True)
        of_label_MN = below_MNK[:, np.arange(len(labels_N)), labels_N]
        return _Terms(below_MNK, of_label_MN, columns_NP, source.weight)

    def spread_out(self, count: int) -> "_Terms":
        """At most `count` images, from all over the set: images of one class may lie together."""
        images = np.unique(np.linspace(0, len(self.columns_NP) - 1, count).round().astype(int))
        return _Terms(self.below_MNK[:, images], self.of_label_MN[:, images], self.columns_NP[images], self.weight)

    def nll(self, theta_P: Floats) -> tuple[Floats, Floats]:
        """Each image's NLL, and its derivatives (N, P)."""
        inverse_N = np.exp(-(self.columns_NP @ theta_P))
        odds_MNK = np.exp(self.below_MNK * inverse_N[:, None])
        total_MN = odds_MNK.sum(axis=2)
        expected_MN = np.einsum("mnk,mnk->mn", odds_MNK, self.below_MNK) / total_MN
        log_prob_MN = self.of_label_MN * inverse_N - np.log(total_MN)
        highest_N = log_prob_MN.max(axis=0)
        prob_MN = np.exp(log_prob_MN - highest_N)
        sum_N = prob_MN.sum(axis=0)
        by_inverse_N = -(prob_MN * (self.of_label_MN - expected_MN)).sum(axis=0) / sum_N
        nll_N = np.log(len(self.below_MNK)) - highest_N - np.log(sum_N)
        return nll_N, (-inverse_N * by_inverse_N)[:, None] * self.columns_NP


def _fit(terms: Sequence[_Terms], groups: Groups | None) -> tuple[Parameter, ...]:
    count = terms[0].columns_NP.shape[1]
    few = [one.spread_out(max(_FEW_OF_A_SET, _FEW // len(terms))) for one in terms]
    theta_P = _find_minimum(partial(_objective, terms=terms), partial(_objective, terms=few), count)
    theta_P[1:][theta_P[1:] < _FLAT] = 0.0
    _refuse_the_ends(theta_P[0], terms)
    errors = _standard_errors(theta_P, terms, groups)
    return tuple(Parameter(float(value), error) for value, error in zip(theta_P, errors, strict=True))


def _find_minimum(objective: _Objective, on_few: _Objective, count: int) -> Floats:
    """The `count` parameters of least value.

    `on_few` is the objective of some of the images, or of all if there are few. It is quick, so that its grid can cover
    the slopes too. With few images there may be several minima, and a search that begins with slopes of 0 may end in a
    higher one.
    """
    flat = [np.array([start, *[0.0] * (count - 1)]) for start in np.linspace(LOWEST, HIGHEST, 15)]
    usual = _descend(objective, min(flat, key=lambda theta_P: objective(theta_P)[0]))
    if count == 1:
        return np.asarray(usual.x, np.float64)
    lowest = min((_descend(on_few, start_P) for start_P in _grid_minima(on_few, count)), key=lambda found: found.fun)
    other = _descend(objective, lowest.x)
    return np.asarray((other if other.fun < usual.fun - _BETTER else usual).x, np.float64)


def _grid_minima(objective: _Objective, count: int) -> Floats:
    """The points of a coarse grid that are no higher than their neighbours along each axis."""
    slopes = _SLOPES if count == 2 else _SLOPES[::2]
    points = np.stack(np.meshgrid(np.linspace(LOWEST, HIGHEST, 12), *[slopes] * (count - 1), indexing="ij"), axis=-1)
    values = np.apply_along_axis(lambda theta_P: objective(theta_P)[0], -1, points)
    walled = np.pad(values, 1, constant_values=np.inf)
    inside = (slice(1, -1),) * count
    is_lowest = np.ones(values.shape, bool)
    for axis, step in itertools.product(range(count), (1, -1)):
        is_lowest &= values <= np.roll(walled, step, axis)[inside]
    return np.asarray(points[is_lowest])


def _descend(objective: _Objective, start_P: Floats) -> OptimizeResult:
    bounds = [(LOWEST, HIGHEST), *[(0.0, STEEPEST)] * (len(start_P) - 1)]
    return minimize(objective, start_P, (), "L-BFGS-B", jac=True, bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})


def _objective(theta_P: Floats, terms: Sequence[_Terms]) -> tuple[float, Floats]:
    value, gradient_P = 0.0, np.zeros(len(theta_P))
    for one in terms:
        nll_N, derivatives_NP = one.nll(theta_P)
        value += one.weight * float(nll_N.mean())
        gradient_P += one.weight * derivatives_NP.mean(axis=0)
    return value, gradient_P


def _refuse_the_ends(log_temperature: float, terms: Sequence[_Terms]) -> None:
    images = max(len(one.columns_NP) for one in terms)
    if log_temperature < LOWEST + 1e-6:
        raise InputError(
            f"these {images:,} images do not determine a temperature: the NLL falls all the way to "
            f"{np.exp(LOWEST):.2f}, the lowest that is tried. Perhaps all of them are predicted "
            "right, or they are too few; use more held-out images"
        )
    if log_temperature > HIGHEST - 1e-6:
        raise InputError(
            f"these {images:,} images do not determine a temperature: the NLL falls all the way to "
            f"{np.exp(HIGHEST):.0f}, the highest that is tried. The predictions say nothing about "
            "the labels; check that the network is trained and that the labels are right"
        )


def _standard_errors(theta_P: Floats, terms: Sequence[_Terms], groups: Groups | None) -> list[float | None]:
    """Over images, each with all its sets: these are not independent. Over groups, if the images are in groups. None
    for a slope at an end of its range."""
    free = [0, *(i for i in range(1, len(theta_P)) if 0 < theta_P[i] < STEEPEST)]
    scores_NP = np.zeros((max(len(one.columns_NP) for one in terms), len(theta_P)))
    for one in terms:
        derivatives_NP = one.nll(theta_P)[1]
        around_NP = derivatives_NP - derivatives_NP.mean(axis=0)
        scores_NP[: len(around_NP)] += one.weight * around_NP / len(around_NP)
    if groups is not None:
        scores_NP = groups.sums(scores_NP)
    curvature = np.stack(
        [(_shifted(theta_P, i, terms, _STEP) - _shifted(theta_P, i, terms, -_STEP)) / (2 * _STEP) for i in free]
    )[:, free]
    inverse = np.linalg.pinv((curvature + curvature.T) / 2)
    covariance = inverse @ (scores_NP[:, free].T @ scores_NP[:, free]) @ inverse
    errors: list[float | None] = [None] * len(theta_P)
    for place, variance in zip(free, np.diag(covariance), strict=True):
        errors[place] = float(np.sqrt(variance))
    return errors


def _shifted(theta_P: Floats, i: int, terms: Sequence[_Terms], step: float) -> Floats:
    """The gradient beside the optimum."""
    moved_P = theta_P.copy()
    moved_P[i] += step
    return _objective(moved_P, terms)[1]


def _checked(one: FitSet) -> FitSet:
    logits_MNK = finite(one.images.logits_MNK, "logits_MNK", ndim=3)
    labels_N = class_labels(one.images.labels_N, "labels_N", *logits_MNK.shape[1:])
    return FitSet(Labelled(logits_MNK, labels_N, one.images.groups_N), one.weight)
