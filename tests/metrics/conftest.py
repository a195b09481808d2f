"""Simulated models whose true calibration is known, for tests of coverage."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import expit, logit, ndtri

from counterpoint.metrics.calibration import Binning, reliability_bins


@dataclass(frozen=True, eq=False)
class Population:
    """An image drawn from it has confidence `confidence_P[i]` and is right with probability `chance_P[i]`."""

    confidence_P: np.ndarray
    chance_P: np.ndarray

    def draw(self, images: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        i = rng.integers(len(self.confidence_P), size=images)
        return self.confidence_P[i], rng.random(images) < self.chance_P[i]

    def true_errors(self, confidence_N: np.ndarray, binning: Binning) -> tuple[float, float]:
        """The ECE and ECE-rms of the whole population in the 15 bins made for `confidence_N`."""
        inner = reliability_bins(confidence_N, np.ones(len(confidence_N)), 15, binning).high[:-1]
        bin_P = np.searchsorted(inner, self.confidence_P, side="left")
        share = np.bincount(bin_P) / len(bin_P)
        gap = np.bincount(bin_P, self.chance_P - self.confidence_P) / len(bin_P) / share
        return float(np.abs(gap) @ share), float(np.sqrt(gap**2 @ share))


def _confidences(kind: str) -> np.ndarray:
    """ "sure": a network on CIFAR-10, mean confidence 0.95, most above 0.99; "spread": from 0.1 to 1, mean 0.63."""
    quantiles = (np.arange(20_000) + 0.5) / 20_000
    if kind == "spread":
        return 0.1 + 0.9 * quantiles**0.7
    return np.maximum(expit(6 + 3 * ndtri(quantiles)), 0.2)


@pytest.fixture(scope="session")
def population() -> Callable[[str, float, float], Population]:
    """population(kind, temperature, shift): right with the log-odds of the confidence / temperature, less the shift."""

    def make(kind: str, temperature: float = 1.0, shift: float = 0.0) -> Population:
        confidence = _confidences(kind)
        return Population(confidence, np.clip(expit(logit(confidence) / temperature) - shift, 0, 1))

    return make
