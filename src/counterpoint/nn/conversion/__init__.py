"""The conversion of any model into a BatchEnsemble, its check and its report."""

from counterpoint.nn.conversion.convert import DEFAULT_INIT_STD, BatchNorm, batch_ensemble
from counterpoint.nn.conversion.report import Conversion, Layer, LeftOut

__all__ = ["DEFAULT_INIT_STD", "BatchNorm", "Conversion", "Layer", "LeftOut", "batch_ensemble"]
