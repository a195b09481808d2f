"""How often the interval of a difference of two AUROCs contains the truth.

    python benchmarks/auroc_difference_coverage.py [--draws 1000]

Each line is one shape of scores, one number of known and of outside images, and the true AUROCs of both models. The
number behind "normal" is the correlation of the two models' scores of an image. Beside our interval stands that of
DeLong's variance alone. 1,000 draws take about 40 seconds on one core, and a coverage of 95 % then has a standard error
of 0.7 points.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import rankdata

from counterpoint.metrics import ood_auroc_difference

Floats = NDArray[np.float64]
SIZES = ((20, 20), (100, 30), (1000, 100), (500, 2000))
TRUTHS = ((0.6, 0.7), (0.9, 0.9), (0.99, 0.99), (0.999, 0.99))
CORRELATIONS = (0.0, 0.7, 0.95)

Drawn = tuple[Floats, Floats]
"""Scores of known images and of outside ones, each (2, N): of both models."""
Draw = Callable[[np.random.Generator, int, int, Floats], Drawn]


def normal(correlation: float) -> Draw:
    root = np.array([[1, 0], [correlation, np.sqrt(1 - correlation**2)]])

    def draw(rng: np.random.Generator, known: int, outside: int, truths: Floats) -> Drawn:
        distance = np.sqrt(2) * ndtri(truths)[:, None]
        return root @ rng.normal(size=(2, known)) + distance, root @ rng.normal(size=(2, outside))

    return draw


def some_unnoticed(rng: np.random.Generator, known: int, outside: int, truths: Floats) -> Drawn:
    """Some outside images score above all known images, and the others below. What the better model misses, the other
    one misses too.
    """
    return rng.random((2, known)), np.where(rng.random(outside) < 1 - truths[:, None], 2.0, -1.0)


def delong(known_2N: Floats, outside_2N: Floats) -> tuple[float, float]:
    placed, others = [], []
    for known_N, outside_N in zip(known_2N, outside_2N, strict=True):
        ranks = rankdata(np.concatenate([known_N, outside_N]))
        placed.append((ranks[: len(known_N)] - rankdata(known_N)) / len(outside_N))
        others.append(1 - (ranks[len(known_N) :] - rankdata(outside_N)) / len(known_N))
    differences = [one - other for one, other in (placed, others)]
    margin = ndtri(0.975) * np.sqrt(sum(one.var(ddof=1) / len(one) for one in differences))
    return float(differences[0].mean() - margin), float(differences[0].mean() + margin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws, rng = parser.parse_args().draws, np.random.default_rng(0)
    shapes: dict[str, Draw] = {f"normal, {correlation}": normal(correlation) for correlation in CORRELATIONS}
    print("shape            known outside        truths     ours  length   DeLong  length")
    for shape, draw in (shapes | {"some unnoticed": some_unnoticed}).items():
        for known, outside in SIZES:
            for truths in TRUTHS:
                found = []
                for _ in range(draws):
                    known_2N, outside_2N = draw(rng, known, outside, np.array(truths))
                    ours = ood_auroc_difference(known_2N[0], outside_2N[0], known_2N[1], outside_2N[1])
                    for low, high in ((ours.low, ours.high), delong(known_2N, outside_2N)):
                        found.append((low - 1e-12 <= truths[0] - truths[1] <= high + 1e-12, high - low))
                by_method = np.array(found).reshape(draws, 2, 2).mean(axis=0)
                figures = "  ".join(f"{100 * covered:5.1f}% {length:7.4f}" for covered, length in by_method)
                print(f"{shape:15} {known:6} {outside:7} {truths[0]:6.3f}, {truths[1]:6.3f}  {figures}", flush=True)


if __name__ == "__main__":
    main()
