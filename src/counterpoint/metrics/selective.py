"""Two uses of confidence: to keep only the predictions that are likely to be right, and to notice images of another
kind.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.metrics.checks import Floats, fractions, zeros_and_ones


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
    confidence_N = fractions(confidence, "confidence", ndim=1)
    wrong_N = 1 - zeros_and_ones(correct, "correct", len(confidence_N))
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

    `confidence_in` (N,) belongs to images like the training images, and `confidence_out` (any number of images) to
    images from outside. The result is the chance that one of the former has more confidence than one of the latter; a
    tie counts half.

    >>> from counterpoint.metrics import ood_auroc
    >>> ood_auroc(confidence_in=[0.9, 0.8], confidence_out=[0.85, 0.3])
    0.75
    """
    inside = fractions(confidence_in, "confidence_in", ndim=1)
    outside = np.sort(fractions(confidence_out, "confidence_out", ndim=1))
    below, not_above = (np.searchsorted(outside, inside, side) for side in ("left", "right"))
    return float((below.sum() + not_above.sum()) / (2 * len(inside) * len(outside)))
