"""BatchEnsemble layers, networks with and without members, the conversion of any model, and deep ensembles."""

from counterpoint.nn.batch_ensemble import BatchEnsembleConv2d, BatchEnsembleLinear
from counterpoint.nn.conversion import Conversion, batch_ensemble
from counterpoint.nn.deep import deep_ensemble
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.groups import parameter_groups
from counterpoint.nn.health import Health, measure_health
from counterpoint.nn.norm import PerMemberBatchNorm2d
from counterpoint.nn.one_member import extract_member
from counterpoint.nn.resnet import resnet
from counterpoint.nn.resnext import resnext29
from counterpoint.nn.vit import vit
from counterpoint.nn.wide_resnet import wide_resnet

__all__ = [
    "BatchEnsembleConv2d",
    "BatchEnsembleLinear",
    "Conversion",
    "Ensemble",
    "Health",
    "PerMemberBatchNorm2d",
    "batch_ensemble",
    "deep_ensemble",
    "extract_member",
    "measure_health",
    "parameter_groups",
    "resnet",
    "resnext29",
    "vit",
    "wide_resnet",
]
