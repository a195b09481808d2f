"""The noise floor: the calibration error that a perfectly calibrated model with the same confidences would show."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import InputError
from counterpoint.metrics.calibration import Binning, reliability_bins
from counterpoint.metrics.checks import Floats, Integers, fractions

_DRAWS_AT_ONCE = 2**15
"""So many stay in the processor's cache. How many there are changes no draw."""


@dataclass(frozen=True)
class NoiseFloor:
    """The ECE that a perfectly calibrated model would show: mean and standard deviation over the simulations.

    The excess is the observed value minus that mean.

    >>> from counterpoint.metrics import noise_floor
    >>> noise_floor([0.9] * 50, [True] * 45 + [False] * 5).ece_excess < 0  # better than noise alone would be
    True
    """

    ece_mean: float
    ece_sd: float
    ece_excess: float
    ece_rms_mean: float
    ece_rms_sd: float
    ece_rms_excess: float


def noise_floor(
    confidence: ArrayLike,
    correct: ArrayLike,
    bins: int = 15,
    binning: Binning = "width",
    simulations: int = 200,
    seed: int = 0,
) -> NoiseFloor:
    """The ECE that a perfectly calibrated model would show on as many images.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. In
    each of the `simulations`, every image is made right with a chance equal to its confidence. The bins stay the
    observed ones.

    >>> from counterpoint.metrics import noise_floor
    >>> few = noise_floor([0.9] * 10, [True] * 9 + [False])
    >>> many = noise_floor([0.9] * 1000, [True] * 900 + [False] * 100)
    >>> few.ece_mean > many.ece_mean > 0
    True
    """
    if not isinstance(simulations, int | np.integer) or simulations < 2:
        raise InputError(f"simulations is {simulations!r}; it must be a whole number, 2 or more")
    table = reliability_bins(confidence, correct, bins, binning)
    confidence_N = fractions(confidence, "confidence", ndim=1)
    right = _simulated_right(np.sort(confidence_N), table.count, simulations, np.random.default_rng(seed))
    gap = right / table.count - table.confidence
    weight = table.count / len(confidence_N)
    eces, rmses = np.abs(gap) @ weight, np.sqrt(gap**2 @ weight)
    return NoiseFloor(
        ece_mean=float(eces.mean()),
        ece_sd=float(eces.std(ddof=1)),
        ece_excess=float(table.ece - eces.mean()),
        ece_rms_mean=float(rmses.mean()),
        ece_rms_sd=float(rmses.std(ddof=1)),
        ece_rms_excess=float(table.ece_rms - rmses.mean()),
    )


def _simulated_right(sorted_N: Floats, count: Integers, simulations: int, rng: np.random.Generator) -> Integers:
    """The number of right images in each bin, one row per simulation.

    Draws in float32 take half the time of float64. They lie on a grid of 2^-24, so a chance is off by at most 6e-8.
    """
    starts = np.cumsum(count) - count
    at_once = max(_DRAWS_AT_ONCE // len(sorted_N), 1)
    rows = []
    for done in range(0, simulations, at_once):
        shape = (min(at_once, simulations - done), len(sorted_N))
        right_SN = rng.random(shape, dtype=np.float32) < sorted_N
        rows.append(np.add.reduceat(right_SN, starts, axis=1, dtype=np.int64))
    return np.concatenate(rows)
