"""Simulated ensembles whose true recalibration is known, and slow, obvious twins of what is computed from logits."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from counterpoint.recalibration.apply import Labelled, apply
from counterpoint.recalibration.fit import FitSet
from counterpoint.records.recalibrated import Acts, Parameter, Recalibration, Signal, Slope


def planted(acts: Acts, *log_temperatures: float, **slopes: float) -> Recalibration:
    """A recalibration with these parameters, such as planted("before", 0.4, entropy=1.5)."""
    signals: dict[str, Signal] = {"entropy": "entropy", "disagreement": "disagreement"}
    return Recalibration(
        acts,
        "clean",
        tuple(Parameter(value) for value in log_temperatures),
        tuple(Slope(signals[name], Parameter(slope)) for name, slope in slopes.items()),
    )


def logits_of(rng: np.random.Generator, images: int, members: int = 3, classes: int = 4) -> np.ndarray:
    """(M, N, K): images differ in how sure the members are of them, and in how far these lie apart."""
    sureness_N, apart_N = rng.uniform(0.5, 4, images), rng.uniform(0, 1.5, images)
    own_MNK = apart_N[:, None] * rng.normal(size=(members, images, classes))
    return sureness_N[:, None] * (rng.normal(size=(images, classes)) + own_MNK)


def labels_of(rng: np.random.Generator, truth: Recalibration, logits_MNK: np.ndarray) -> np.ndarray:
    """Labels drawn with the probabilities that the true recalibration gives."""
    upper_NK = apply(truth, logits_MNK).ensemble_NK.cumsum(axis=1)
    upper_NK[:, -1] = 1.0
    return (rng.random((len(upper_NK), 1)) < upper_NK).argmax(axis=1)


def simulated(truth: Recalibration, images: int, seed: int = 0, **shape: int) -> Labelled:
    rng = np.random.default_rng(seed)
    logits_MNK = logits_of(rng, images, **shape)
    return Labelled(logits_MNK, labels_of(rng, truth, logits_MNK))


def alone(images: Labelled) -> list[FitSet]:
    """The only set to fit on."""
    return [FitSet(images, 1.0)]


def parameters(found: Recalibration) -> list[Parameter]:
    return [*found.log_temperatures, *(one.slope for one in found.slopes)]


def values(found: Recalibration) -> list[float]:
    return [parameter.value for parameter in parameters(found)]


def errors(found: Recalibration) -> list[float | None]:
    return [parameter.standard_error for parameter in parameters(found)]


def slow_softmax(logits: Sequence[float], temperature: float = 1.0) -> list[float]:
    powers = [math.exp((value - max(logits)) / temperature) for value in logits]
    return [power / sum(powers) for power in powers]


def slow_entropy(probs: Sequence[float]) -> float:
    return -sum(p * math.log(p) for p in probs if p > 0)


def slow_mean(rows: Sequence[Sequence[float]]) -> list[float]:
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


def slow_signals(member_logits: Any) -> tuple[float, float]:
    """Of one image: entropy and disagreement."""
    members = [slow_softmax(logits) for logits in member_logits]
    most = math.log(len(members[0]))
    entropy = sum(slow_entropy(probs) for probs in members) / len(members)
    return entropy / most, (slow_entropy(slow_mean(members)) - entropy) / most


def slow_apply(truth: Recalibration, logits_MNK: Any) -> list[list[float]]:
    """The ensemble's probabilities, image by image."""
    rows = []
    for number in range(len(logits_MNK[0])):
        member_logits = [logits_NK[number] for logits_NK in logits_MNK]
        log_temperatures = [parameter.value for parameter in truth.log_temperatures]
        for one in truth.slopes:
            signal = slow_signals(member_logits)[0 if one.signal == "entropy" else 1]
            log_temperatures = [value + one.slope.value * signal for value in log_temperatures]
        temperatures = [math.exp(value) for value in log_temperatures]
        if truth.acts == "after":
            mean = slow_mean([slow_softmax(logits) for logits in member_logits])
            powers = [p ** (1 / temperatures[0]) for p in mean]
            rows.append([power / sum(powers) for power in powers])
            continue
        each = temperatures if truth.acts == "per-member" else temperatures * len(member_logits)
        rows.append(slow_mean([slow_softmax(one, t) for one, t in zip(member_logits, each, strict=True)]))
    return rows


def slow_nll(truth: Recalibration, images: Labelled) -> list[float]:
    """Each image's NLL."""
    probs = slow_apply(truth, images.logits_MNK)
    return [-math.log(row[label]) for row, label in zip(probs, images.labels_N.tolist(), strict=True)]
