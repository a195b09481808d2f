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
    """The check of an ensemble's factors and predictions; None for a single network."""
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
    """How much the members differ, mean over some sets of images, and what independent members would show there."""
    independent = [independent_disagreement(_mean_error(one), num_classes) for one in summaries]
    return {
        "disagreement": float(np.mean([one["disagreement"] for one in summaries])),
        "pairwise_kl": float(np.mean([one["pairwise_kl"] for one in summaries])),
        "independent_disagreement": float(np.mean(independent)),
    }


def _mean_error(summary: Summary) -> float:
    return float(np.mean([member["error"] for member in summary["members"]]))
