"""Temperature scaling of an ensemble: logits divided by temperatures that are fitted by NLL on held-out images.

Where the temperature acts (`kind`):
- "before": one temperature on every member's logits, then the mean of the probabilities;
- "after": one temperature on the log of the mean probability;
- "per-member": one temperature per member, fitted to that member alone, then the mean of the probabilities.
"""

from typing import get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp, softmax

from counterpoint.errors import InputError, unknown
from counterpoint.metrics.checks import Floats, Integers, class_labels, finite
from counterpoint.records.recalibrated import TemperatureKind

Kind = TemperatureKind

# Images that are all predicted right have no best temperature: the NLL falls with the temperature. For useless logits
# the best temperature is infinite; they get 20, at which hardly anything is left of them.
_LOWEST, _HIGHEST = 0.05, 20.0


def fit_temperature(logits_MNK: ArrayLike, labels_N: ArrayLike, kind: Kind) -> tuple[float, ...]:
    """The temperature of least NLL between 0.05 and 20, or M of them if `kind` is "per-member".

    Raises where the NLL falls all the way to 0.05, as it does for a network that gets every image right.
    """
    scaled_MNK = _what_is_scaled(logits_MNK, kind)
    labels = class_labels(labels_N, "labels_N", *scaled_MNK.shape[1:])
    if kind == "per-member":
        return tuple(_best_temperature(member_NK[None], labels) for member_NK in scaled_MNK)
    return (_best_temperature(scaled_MNK, labels),)


def apply_temperature(logits_MNK: ArrayLike, temperatures: tuple[float, ...], kind: Kind) -> Floats:
    """The ensemble's probabilities (N, K) with the temperatures that `fit_temperature` gave for the same `kind`."""
    scaled_MNK = _what_is_scaled(logits_MNK, kind)
    temperatures_T = finite(temperatures, "temperatures", ndim=1)
    if (temperatures_T <= 0).any():
        raise InputError(f"temperatures holds {temperatures_T.min()}; every temperature must be above 0")
    expected = len(scaled_MNK) if kind == "per-member" else 1
    if len(temperatures_T) != expected:
        raise InputError(f"{len(temperatures_T)} temperatures were given; kind {kind!r} needs {expected} here")
    return np.asarray(softmax(scaled_MNK / temperatures_T[:, None, None], axis=2).mean(axis=0))


def cross_fitted_probabilities(logits_MNK: ArrayLike, labels_N: ArrayLike, kind: Kind, seed: int = 0) -> Floats:
    """Probabilities (N, K), each image's with the temperatures of `cross_fit`, which have not seen it."""
    logits = finite(logits_MNK, "logits_MNK", ndim=3)
    probs_NK = np.empty(logits.shape[1:])
    for images, temperatures in cross_fit(logits, labels_N, kind, seed):
        probs_NK[images] = apply_temperature(logits[:, images], temperatures, kind)
    return probs_NK


def cross_fit(
    logits_MNK: ArrayLike, labels_N: ArrayLike, kind: Kind, seed: int = 0
) -> list[tuple[Integers, tuple[float, ...]]]:
    """For each of two random halves: the numbers of its images, and the temperatures fitted on the other half."""
    logits = finite(logits_MNK, "logits_MNK", ndim=3)
    images, classes = logits.shape[1:]
    labels = class_labels(labels_N, "labels_N", images, classes)
    if images < 2:
        raise InputError("logits_MNK has one image; cross-fitting needs at least two")
    first, second = np.array_split(np.random.default_rng(seed).permutation(images), 2)
    return [
        (applied, fit_temperature(logits[:, fitted], labels[fitted], kind))
        for fitted, applied in ((first, second), (second, first))
    ]


def _what_is_scaled(logits_MNK: ArrayLike, kind: Kind) -> Floats:
    """The logits; for "after", the log of the mean probability, as if it were the logits of a single member."""
    if kind not in get_args(Kind):
        raise unknown("kind of temperature", kind, get_args(Kind))
    logits = finite(logits_MNK, "logits_MNK", ndim=3)
    if kind != "after":
        return logits
    return np.asarray(logsumexp(log_softmax(logits, axis=2), axis=0, keepdims=True) - np.log(len(logits)))


def _best_temperature(scaled_MNK: Floats, labels_N: Integers) -> float:
    images = np.arange(len(labels_N))

    def nll(log_temperature: float) -> float:
        log_probs_MNK = log_softmax(scaled_MNK / np.exp(log_temperature), axis=2)
        return -float((logsumexp(log_probs_MNK[:, images, labels_N], axis=0)).mean())

    # The NLL of a mean of members can have several minima. A coarse grid finds the surroundings of the lowest one.
    grid = np.linspace(np.log(_LOWEST), np.log(_HIGHEST), 15)
    lowest = int(np.argmin([nll(point) for point in grid]))
    if lowest == 0:
        raise InputError(
            f"these {len(labels_N):,} images do not determine a temperature: the NLL falls all the way to {_LOWEST}. "
            "Is every one of them predicted right? Use more held-out images"
        )
    around = grid[max(lowest - 1, 0)], grid[min(lowest + 1, len(grid) - 1)]
    found = minimize_scalar(nll, bounds=around, method="bounded", options={"xatol": 1e-6})
    return float(np.exp(found.x))
