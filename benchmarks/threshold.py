"""How often a threshold is found, how much it keeps and how often its promise breaks, on simulated images.

    python benchmarks/threshold.py [--sets 2000]

Each image has log-odds of a right prediction, and a network's confidence is a function of them. So the true error of
the kept predictions is known. `sequence 1/4` is what `counterpoint threshold` does: a quarter of the images suggests
where to start. The other methods use other shares, or one bound for all thresholds at once on the same three quarters
(`Bonferroni`).

2,000 sets take about three minutes on one core. A share of 5 % then has a standard error of 0.5 points.
"""

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr, expit, ndtri

from counterpoint.errors import InputError
from counterpoint.metrics.threshold import GRID, RISK, likely_start, lowest_threshold

Floats = NDArray[np.float64]
SIZES = ((10_000, 0.005), (5000, 0.01), (1500, 0.01), (500, 0.03))


@dataclass(frozen=True)
class Network:
    """Its log-odds are normal. A temperature below 1 makes it over-confident, and noise is in the labels."""

    mean: float
    spread: float
    temperature: float
    noise: float = 0.0

    def images(self, uniform: Floats) -> tuple[Floats, Floats]:
        """Confidence, and the chance to be right."""
        odds = self.mean + self.spread * ndtri(uniform)
        return np.maximum(expit(odds / self.temperature), 0.1), np.maximum(expit(odds), 0.1) * (1 - self.noise)

    def truth(self) -> tuple[Floats, Floats]:
        """For each threshold of the grid the coverage, and the error of what is kept."""
        confidence, chance = self.images((np.arange(200_000) + 0.5) / 200_000)
        kept = [confidence >= threshold for threshold in GRID]
        errors = [float(1 - chance[of].mean()) if of.any() else 0.0 for of in kept]
        return np.array([of.mean() for of in kept]), np.array(errors)


NETWORKS = {
    "calibrated": Network(5.0, 3.0, 1.0),
    "over-confident": Network(5.0, 3.0, 0.5),
    "very sure, noisy labels": Network(8.0, 3.0, 0.3, 0.002),
    "error of 12 %": Network(3.0, 2.0, 1.0),
}
Method = Callable[[Floats, Floats, float], float | None]


def sequence(share: int) -> Method:
    def find(confidence_N: Floats, correct_N: Floats, target: float) -> float | None:
        first, second = slice(len(correct_N) // share), slice(len(correct_N) // share, None)
        others = len(correct_N) - len(correct_N) // share
        start = likely_start(confidence_N[first], correct_N[first], target, others)
        try:
            return lowest_threshold(confidence_N[second], correct_N[second], target, start).chosen.threshold
        except InputError:
            return None

    return find


def bonferroni(confidence_N: Floats, correct_N: Floats, target: float) -> float | None:
    confidence_N, correct_N = confidence_N[len(correct_N) // 4 :], correct_N[len(correct_N) // 4 :]
    order = np.argsort(confidence_N)
    below_G = np.searchsorted(confidence_N[order], GRID)
    wrong_G = np.append(np.cumsum(1 - correct_N[order][::-1])[::-1], 0)[below_G]
    passing_G = bdtr(wrong_G, len(correct_N) - below_G, target) < RISK / len(GRID)
    return float(GRID[passing_G][-1]) if passing_G.any() else None


METHODS = {f"sequence 1/{share}": sequence(share) for share in (10, 4, 2)} | {"Bonferroni": bonferroni}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=2000)
    sets = parser.parse_args().sets
    print("found % / kept % (0 where none is found) / broken %")
    for name, network in NETWORKS.items():
        coverage_G, error_G = network.truth()
        place = {float(threshold): i for i, threshold in enumerate(GRID)}
        for images, target in SIZES:
            rng = np.random.default_rng(2026)
            chosen: dict[str, list[int]] = {method: [] for method in METHODS}
            for _ in range(sets):
                confidence_N, chance_N = network.images(rng.random(images))
                correct_N = (rng.random(images) < chance_N).astype(np.float64)
                for method, find in METHODS.items():
                    if (threshold := find(confidence_N, correct_N, target)) is not None:
                        chosen[method].append(place[threshold])
            possible = 100 * coverage_G[error_G < target].max(initial=0.0)
            print(
                f"{name}, {images:,} images, below {target:.1%} (with the truth known {possible:.1f} % could be kept):"
            )
            for method, found in chosen.items():
                kept, broken = 100 * coverage_G[found].sum() / sets, 100 * (error_G[found] >= target).sum() / sets
                print(f"  {method:14} {100 * len(found) / sets:5.1f} / {kept:4.1f} / {broken:.1f}", flush=True)


if __name__ == "__main__":
    main()
