"""How often the interval of an AUROC contains the truth, for scores of several shapes.

    python benchmarks/auroc_coverage.py [--draws 1000]

Each line is one shape of scores, one number of known and of outside images, and one true AUROC. Beside our interval
stands that of DeLong's variance alone, value ± 1.96 standard errors. 1,000 draws take about 2 minutes on one core, and
a coverage of 95 % then has a standard error of 0.7 points.
"""

import argparse
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from counterpoint.metrics import ood_auroc_interval

Floats = NDArray[np.float64]
SIZES = ((20, 20), (100, 30), (1000, 100), (500, 2000))
TRUTHS = (0.6, 0.9, 0.99, 0.999)
_CUTS = np.array([-0.5, 0.5, 1.5, 2.5])

Drawn = tuple[Floats, Floats, float]
"""Scores of known images and of outside ones, and the true AUROC."""


def normal(rng: np.random.Generator, known: int, outside: int, truth: float) -> Drawn:
    return rng.normal(ndtri(truth) * np.sqrt(2), 1, known), rng.normal(0, 1, outside), truth


def wide_outside(rng: np.random.Generator, known: int, outside: int, truth: float) -> Drawn:
    return rng.normal(ndtri(truth) * np.sqrt(10), 1, known), rng.normal(0, 3, outside), truth


def wide_known(rng: np.random.Generator, known: int, outside: int, truth: float) -> Drawn:
    return rng.normal(ndtri(truth) * np.sqrt(10), 3, known), rng.normal(0, 1, outside), truth


def some_unnoticed(rng: np.random.Generator, known: int, outside: int, truth: float) -> Drawn:
    """Some outside images score above all known images, and the others below."""
    return rng.random(known), np.where(rng.random(outside) < 1 - truth, 2.0, -1.0), truth


def many_ties(rng: np.random.Generator, known: int, outside: int, truth: float) -> Drawn:
    """Five values in all."""
    distance = ndtri(truth) * np.sqrt(2)
    shares = [np.diff(ndtr(np.concatenate([[-np.inf], _CUTS - mean, [np.inf]]))) for mean in (distance, 0.0)]
    below = np.cumsum(shares[1]) - shares[1]
    drawn = [np.digitize(rng.normal(mean, 1, n), _CUTS) / 4 for mean, n in ((distance, known), (0.0, outside))]
    return drawn[0], drawn[1], float((shares[0] * (below + shares[1] / 2)).sum())


SHAPES: dict[str, Callable[[np.random.Generator, int, int, float], Drawn]] = {
    "normal": normal,
    "wide outside": wide_outside,
    "wide known": wide_known,
    "some unnoticed": some_unnoticed,
    "many ties": many_ties,
}


def delong(known_N: Floats, outside_N: Floats) -> tuple[float, float]:
    ranks = rankdata(np.concatenate([known_N, outside_N]))
    placed = (ranks[: len(known_N)] - rankdata(known_N)) / len(outside_N)
    others = (ranks[len(known_N) :] - rankdata(outside_N)) / len(known_N)
    margin = ndtri(0.975) * np.sqrt(placed.var(ddof=1) / len(placed) + others.var(ddof=1) / len(others))
    return float(placed.mean() - margin), float(placed.mean() + margin)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=1000)
    draws, rng = parser.parse_args().draws, np.random.default_rng(0)
    print("shape            known outside  truth    ours  length   DeLong  length")
    for shape, draw in SHAPES.items():
        for known, outside in SIZES:
            for wanted in TRUTHS:
                found = []
                for _ in range(draws):
                    known_N, outside_N, truth = draw(rng, known, outside, wanted)
                    ours = ood_auroc_interval(known_N, outside_N)
                    for low, high in ((ours.low, ours.high), delong(known_N, outside_N)):
                        found.append((low - 1e-12 <= truth <= high + 1e-12, high - low))
                by_method = np.array(found).reshape(draws, 2, 2).mean(axis=0)
                figures = "  ".join(f"{100 * covered:5.1f}% {length:7.4f}" for covered, length in by_method)
                print(f"{shape:15} {known:6} {outside:7} {truth:6.3f}  {figures}", flush=True)


if __name__ == "__main__":
    main()
