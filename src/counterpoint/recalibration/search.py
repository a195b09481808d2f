"""The lowest minimum of an NLL that may have several: a grid finds their surroundings, and gradients the lowest points.

The parameters are a log temperature, and perhaps slopes. Nothing here is random.
"""

import itertools
from collections.abc import Callable

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from counterpoint.metrics.checks import Floats

Objective = Callable[[Floats], tuple[float, Floats]]
"""From parameters to the value and its derivatives."""

# Images that are all predicted right have no best temperature: the NLL falls with the temperature. Those of useless
# logits have none either: it falls as the temperature grows.
LOWEST, HIGHEST = np.log(0.05), np.log(20.0)
STEEPEST = 50.0
_SLOPES = (0.0, 0.4, 1.0, 2.0, 4.0, 8.0, 14.0, 25.0, STEEPEST)
_BETTER = 1e-9  # nats; two searches that end in the same minimum differ by less


def find_minimum(objective: Objective, on_few: Objective, count: int) -> Floats:
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


def _grid_minima(objective: Objective, count: int) -> Floats:
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


def _descend(objective: Objective, start_P: Floats) -> OptimizeResult:
    bounds = [(LOWEST, HIGHEST), *[(0.0, STEEPEST)] * (len(start_P) - 1)]
    return minimize(objective, start_P, (), "L-BFGS-B", jac=True, bounds=bounds, options={"ftol": 1e-14, "gtol": 1e-9})
