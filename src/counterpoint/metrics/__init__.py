"""Metrics of predicted probabilities, in float64, each with its definition stated. Nothing here imports torch."""

from counterpoint.metrics.calibration import ReliabilityBins, ece, ece_rms, reliability_bins
from counterpoint.metrics.diversity import disagreement
from counterpoint.metrics.scores import ImageScores, brier, error, image_scores, nll
from counterpoint.metrics.shift import aggregate
from counterpoint.metrics.summary import summarise

__all__ = [
    "ImageScores",
    "ReliabilityBins",
    "aggregate",
    "brier",
    "disagreement",
    "ece",
    "ece_rms",
    "error",
    "image_scores",
    "nll",
    "reliability_bins",
    "summarise",
]
