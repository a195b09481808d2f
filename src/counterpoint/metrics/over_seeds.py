"""The difference between two experiments that were trained with several seeds, ours − other, with an interval over
seeds.

Student's t: it takes the figures of other seeds to be roughly normal. With few seeds one outlier weighs heavily.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, finite

_ROUNDING = 1e-12


@dataclass(frozen=True)
class DifferenceOverSeeds:
    """The difference of two means over seeds.

    >>> from counterpoint.metrics import difference_over_seeds
    >>> found = difference_over_seeds([0.1, 0.2], [0.3, 0.5], paired=True)
    >>> round(found.value, 2), round(found.deviation, 2), found.degrees
    (-0.25, 0.07, 1.0)
    """

    value: float
    deviation: float
    """The standard deviation of the difference between one training of each."""
    degrees: float
    """The degrees of freedom of Student's t."""
    low: float | None
    """None, as `high` is, where all seeds agree: nothing then says how far others would be apart."""
    high: float | None


def difference_over_seeds(
    ours_S: ArrayLike, other_S: ArrayLike, *, paired: bool, level: float = 0.95
) -> DifferenceOverSeeds:
    """The difference between the means of one figure per training, with its interval over seeds.

    If `paired`, entry i of both is of the same seed, and the interval is that of the mean of their differences.
    Otherwise it is Welch's, for two groups whose spreads may differ. They may then have different numbers of seeds.

    >>> from counterpoint.metrics import difference_over_seeds
    >>> found = difference_over_seeds([0.12, 0.15, 0.11], [0.16, 0.20, 0.14], paired=True)
    >>> round(found.value, 3), round(found.low, 3), round(found.high, 3)
    (-0.04, -0.065, -0.015)
    """
    ours, other = finite(ours_S, "ours_S", ndim=1), finite(other_S, "other_S", ndim=1)
    if not 0 < level < 1:
        raise InputError(f"level is {level}; it must lie between 0 and 1, such as 0.95")
    if min(len(ours), len(other)) < 2:
        raise InputError(
            f"there are {len(ours)} and {len(other)} trainings; an interval over seeds needs at least two of each"
        )
    if paired and len(ours) != len(other):
        raise InputError(f"there are {len(ours)} and {len(other)} trainings; pairs need equally many")
    value = float((ours - other).mean() if paired else ours.mean() - other.mean())
    groups = [ours - other] if paired else [ours, other]
    sizes, variances = np.array([len(group) for group in groups]), np.array([_variance(group) for group in groups])
    errors = variances / sizes  # squared standard errors of the means
    if not errors.any():
        return DifferenceOverSeeds(value, 0.0, float((sizes - 1).sum()), None, None)
    # Welch and Satterthwaite's degrees of freedom. Of one group they are its size less 1.
    degrees = float(sizes[0] - 1 if paired else errors.sum() ** 2 / (errors**2 / (sizes - 1)).sum())
    margin = float(stdtrit(degrees, (1 + level) / 2) * np.sqrt(errors.sum()))
    return DifferenceOverSeeds(value, float(np.sqrt(variances.sum())), degrees, value - margin, value + margin)


def _variance(values_S: Floats) -> float:
    """0 where all are equal but for rounding."""
    return 0.0 if np.ptp(values_S) <= _ROUNDING * max(1.0, np.abs(values_S).max()) else float(values_S.var(ddof=1))
