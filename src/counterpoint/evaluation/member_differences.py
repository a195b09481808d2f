"""Do a run's members differ? What results.json says about it, on clean images and at each severity."""

from collections.abc import Sequence

import numpy as np

from counterpoint.evaluation.logits import read_factors
from counterpoint.metrics import collapse_verdict, factor_correlation, independent_disagreement
from counterpoint.records.figures import Summary
from counterpoint.records.results import Between, Collapse, Shifted
from counterpoint.runs.imported import AnyRun


def collapse_record(run: AnyRun, clean: Summary, corrupted: Shifted | None, num_classes: int) -> Collapse | None:
    """How far an ensemble's factors and predictions differ, with a verdict. None for a single network.

    A deep ensemble has no factors, and is judged by its predictions alone.
    """
    if clean.disagreement is None or clean.pairwise_kl is None:
        return None
    by_severity = zip(*corrupted.cells.values(), strict=True) if corrupted else ()
    return Collapse(
        **{kind: factor_correlation(layers) for kind, layers in read_factors(run).items() if layers},
        clean=_between([clean], num_classes),
        severities=tuple(_between(summaries, num_classes) for summaries in by_severity),
        verdict=collapse_verdict(clean.disagreement, _mean_error(clean), clean.pairwise_kl, num_classes),
    )


def _between(summaries: Sequence[Summary], num_classes: int) -> Between:
    """Means over sets of images."""
    return Between(
        disagreement=float(np.mean([summary.disagreement for summary in summaries])),
        pairwise_kl=float(np.mean([summary.pairwise_kl for summary in summaries])),
        independent_disagreement=float(
            np.mean([independent_disagreement(_mean_error(summary), num_classes) for summary in summaries])
        ),
    )


def _mean_error(summary: Summary) -> float:
    return float(np.mean([member.error for member in summary.members]))
