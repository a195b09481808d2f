"""Do a run's members differ? What results.json says about it, on clean images and at each severity."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from counterpoint.evaluation.logits import read_factors
from counterpoint.metrics import collapse_verdict, factor_correlation, independent_disagreement
from counterpoint.runs.folder import Run

Summary = Mapping[str, Any]
"""What `metrics.summarise` gives for one set of images."""


def collapse_results(
    run: Run, clean: Summary, cells: Mapping[str, Sequence[Summary]], num_classes: int
) -> dict[str, Any] | None:
    """How far an ensemble's factors and predictions differ, with a verdict. None for a single network."""
    if len(clean["members"]) == 1:
        return None
    by_severity = zip(*cells.values(), strict=True)
    verdict = collapse_verdict(clean["disagreement"], _mean_error(clean), clean["pairwise_kl"], num_classes)
    return {
        **{kind: asdict(factor_correlation(layers)) for kind, layers in read_factors(run).items()},
        "clean": _differences([clean], num_classes),
        "severities": [_differences(summaries, num_classes) for summaries in by_severity],
        "verdict": verdict,
    }


def _differences(summaries: Sequence[Summary], num_classes: int) -> dict[str, float]:
    """How much the members differ, and how much independent members would: means over sets of images."""
    independent = [independent_disagreement(_mean_error(summary), num_classes) for summary in summaries]
    return {
        "disagreement": float(np.mean([summary["disagreement"] for summary in summaries])),
        "pairwise_kl": float(np.mean([summary["pairwise_kl"] for summary in summaries])),
        "independent_disagreement": float(np.mean(independent)),
    }


def _mean_error(summary: Summary) -> float:
    return float(np.mean([member["error"] for member in summary["members"]]))
