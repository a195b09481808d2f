"""Metrics of predicted probabilities, in float64, each with its definition stated. Nothing here imports torch."""

from counterpoint.metrics.calibration import ReliabilityBins, ece, ece_rms, overconfidence, reliability_bins
from counterpoint.metrics.collapse import collapse_verdict, factor_correlation, independent_disagreement
from counterpoint.metrics.debiased import ece_debiased, ece_rms_debiased
from counterpoint.metrics.diversity import disagreement, entropy_of_mean, mean_pairwise_kl, mutual_information
from counterpoint.metrics.floor import NoiseFloor, noise_floor
from counterpoint.metrics.intervals import Interval
from counterpoint.metrics.over_cells import intervals_over_cells
from counterpoint.metrics.over_seeds import DifferenceOverSeeds, difference_over_seeds
from counterpoint.metrics.paired import error_difference, mean_difference, paired_differences
from counterpoint.metrics.paired_calibration import calibration_differences
from counterpoint.metrics.scores import ImageScores, brier, error, image_scores, nll
from counterpoint.metrics.selective import (
    RiskCoverage,
    aurc,
    ood_auroc,
    ood_auroc_difference,
    ood_auroc_interval,
    ood_fpr,
    risk_coverage,
)
from counterpoint.metrics.shift import aggregate
from counterpoint.metrics.summary import SetScores, score_set, summarise
from counterpoint.metrics.threshold import likely_start, lowest_threshold
from counterpoint.records.results import FactorCorrelation

__all__ = [
    "DifferenceOverSeeds",
    "FactorCorrelation",
    "ImageScores",
    "Interval",
    "NoiseFloor",
    "ReliabilityBins",
    "RiskCoverage",
    "SetScores",
    "aggregate",
    "aurc",
    "brier",
    "calibration_differences",
    "collapse_verdict",
    "difference_over_seeds",
    "disagreement",
    "ece",
    "ece_debiased",
    "ece_rms",
    "ece_rms_debiased",
    "entropy_of_mean",
    "error",
    "error_difference",
    "factor_correlation",
    "image_scores",
    "independent_disagreement",
    "intervals_over_cells",
    "likely_start",
    "lowest_threshold",
    "mean_difference",
    "mean_pairwise_kl",
    "mutual_information",
    "nll",
    "noise_floor",
    "ood_auroc",
    "ood_auroc_difference",
    "ood_auroc_interval",
    "ood_fpr",
    "overconfidence",
    "paired_differences",
    "reliability_bins",
    "risk_coverage",
    "score_set",
    "summarise",
]
