"""What happens to a model under shift: metrics over the cells of 15 corruptions × 5 severities, as three aggregates.

The aggregates are (docs/paper.md, 13):
- "by-corruption", the headline, pools the severities of a corruption, computes the metric, and averages over the
  corruptions;
- "by-cell" computes the metric in each cell and averages over the cells;
- "pooled" computes the metric on all images at once.
"""

from collections.abc import Callable, Sequence

import numpy as np

from counterpoint.metrics.scores import Grid, ImageScores, images_of_cells, join_scores
from counterpoint.metrics.summary import figures, floors
from counterpoint.records.figures import Aggregate, AggregateFigures
from counterpoint.threads import in_threads

Aggregates = dict[Aggregate, AggregateFigures]


def aggregate(grid: Grid) -> Aggregates:
    """The metrics over all cells, by three aggregates. `grid` has each corruption's scores, one per severity.

    Error, NLL and Brier score are equal in all three, calibration errors are not.

    >>> from counterpoint.metrics import aggregate, image_scores
    >>> mild, strong = image_scores([[0.9, 0.1]], [0]), image_scores([[0.7, 0.3]], [1])
    >>> found = aggregate({"fog": [mild, strong]})
    >>> found["by-corruption"].error
    0.5
    """
    return _three_aggregates(grid, lambda scores: vars(figures(scores)))


def aggregate_with_floors(grid: Grid) -> Aggregates:
    """With the noise floor of each calibration error. Row i of every cell must be the same image."""
    images = images_of_cells(grid)
    return _three_aggregates(grid, lambda scores: vars(figures(scores)) | floors(scores, images))


def _three_aggregates(grid: Grid, measure: Callable[[ImageScores], dict[str, float]]) -> Aggregates:
    by_corruption = [join_scores(severities) for severities in grid.values()]
    cells = [scores for severities in grid.values() for scores in severities]
    # The largest first, so that no thread is left with it at the end.
    measured = list(in_threads(measure, (join_scores(by_corruption), *by_corruption, *cells)))
    first_cell = 1 + len(by_corruption)
    return {
        "by-corruption": _mean(measured[1:first_cell]),
        "by-cell": _mean(measured[first_cell:]),
        "pooled": _mean(measured[:1]),
    }


def _mean(rows: Sequence[dict[str, float]]) -> AggregateFigures:
    return AggregateFigures(**{name: float(np.mean([row[name] for row in rows])) for name in rows[0]})
