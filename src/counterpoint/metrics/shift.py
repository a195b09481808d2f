"""What happens to a model under shift: 15 corruptions × 5 severities, and the three ways to sum them up (SPEC D12)."""

from collections.abc import Callable, Sequence

import numpy as np

from counterpoint.metrics.scores import Grid, ImageScores, join_scores
from counterpoint.metrics.summary import figures, floors

Ways = dict[str, dict[str, float]]
"""For each way to sum up, values by name."""


def aggregate(grid: Grid) -> Ways:
    """The metrics over all cells, three ways; error, NLL and Brier are the same in each, calibration errors are not.

    by-corruption, the headline, pools the severities of a corruption, computes the metric, and averages over the
    corruptions; by-cell averages over the cells; pooled computes the metric on all images at once.
    """
    return _three_ways(grid, figures)


def aggregate_floors(grid: Grid) -> Ways:
    """The noise floors of the aggregated calibration errors; an image's cells count as independent of each other."""
    return _three_ways(grid, floors)


def _three_ways(grid: Grid, measure: Callable[[ImageScores], dict[str, float]]) -> Ways:
    pooled_by_corruption = [join_scores(severities) for severities in grid.values()]
    return {
        "by-corruption": _mean([measure(scores) for scores in pooled_by_corruption]),
        "by-cell": _mean([measure(scores) for severities in grid.values() for scores in severities]),
        "pooled": measure(join_scores(pooled_by_corruption)),
    }


def _mean(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
