"""Metrics of predicted probabilities, in float64, each with its definition stated. Nothing here imports torch."""

from counterpoint.metrics.calibration import ReliabilityBins, ece, ece_rms, reliability_bins
from counterpoint.metrics.diversity import disagreement
from counterpoint.metrics.scores import brier, error, nll
from counterpoint.metrics.summary import summarise

__all__ = [
    "ReliabilityBins",
    "brier",
    "disagreement",
    "ece",
    "ece_rms",
    "error",
    "nll",
    "reliability_bins",
    "summarise",
]
