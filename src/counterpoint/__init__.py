"""Ensembles whose members each see the images augmented in their own way, and how far to trust their confidence.

The public names can be imported from here. Each is loaded when it is first used: the command line stays fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterpoint.augment import apply_augmix, make_views, mixing_weights, perturb, sample_augmix
    from counterpoint.config import Experiment
    from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
    from counterpoint.data import load_images
    from counterpoint.errors import InputError
    from counterpoint.evaluation.comparison import compare_run
    from counterpoint.evaluation.imported.importing import evaluate_logits
    from counterpoint.evaluation.over_seeds import compare_experiments
    from counterpoint.evaluation.pipeline import evaluate_run
    from counterpoint.evaluation.recalibration import recalibrate_run
    from counterpoint.evaluation.threshold import threshold_run
    from counterpoint.experiments import EXPERIMENTS
    from counterpoint.export import export_run
    from counterpoint.metrics import brier, disagreement, ece, ece_rms, nll, reliability_bins
    from counterpoint.nn import (
        BatchEnsembleConv2d,
        BatchEnsembleLinear,
        Ensemble,
        batch_ensemble,
        deep_ensemble,
        parameter_groups,
        resnet,
        resnext29,
        vit,
        wide_resnet,
    )
    from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
    from counterpoint.report import write_report
    from counterpoint.runs.folder import load_run
    from counterpoint.serving.network import load_ensemble
    from counterpoint.serving.predict import Predictor, load_predictor
    from counterpoint.training.loop import train

__version__ = "0.1.0"

_PUBLIC = {
    "augment": "apply_augmix make_views mixing_weights perturb sample_augmix",
    "config": "Experiment",
    "corrupt": "CORRUPTIONS EXTRA_CORRUPTIONS",  # `corrupt` itself is the room: use counterpoint.corrupt.corrupt
    "data": "load_images",
    "errors": "InputError",
    "evaluation.comparison": "compare_run",
    "evaluation.imported.importing": "evaluate_logits",
    "evaluation.over_seeds": "compare_experiments",
    "evaluation.pipeline": "evaluate_run",
    "evaluation.recalibration": "recalibrate_run",
    "evaluation.threshold": "threshold_run",
    "experiments": "EXPERIMENTS",
    "export": "export_run",
    "metrics": "brier disagreement ece ece_rms nll reliability_bins",
    "nn": "BatchEnsembleConv2d BatchEnsembleLinear Ensemble batch_ensemble deep_ensemble parameter_groups resnet "
    "resnext29 vit wide_resnet",
    "policy": "Adversarial AugMix MemberPolicy StochasticDepth",
    "report": "write_report",
    "runs.folder": "load_run",
    "serving.network": "load_ensemble",
    "serving.predict": "Predictor load_predictor",
    "training.loop": "train",
}
_ROOM_OF = {name: room for room, names in _PUBLIC.items() for name in names.split()}

__all__ = [
    "CORRUPTIONS",
    "EXPERIMENTS",
    "EXTRA_CORRUPTIONS",
    "Adversarial",
    "AugMix",
    "BatchEnsembleConv2d",
    "BatchEnsembleLinear",
    "Ensemble",
    "Experiment",
    "InputError",
    "MemberPolicy",
    "Predictor",
    "StochasticDepth",
    "apply_augmix",
    "batch_ensemble",
    "brier",
    "compare_experiments",
    "compare_run",
    "deep_ensemble",
    "disagreement",
    "ece",
    "ece_rms",
    "evaluate_logits",
    "evaluate_run",
    "export_run",
    "load_ensemble",
    "load_images",
    "load_predictor",
    "load_run",
    "make_views",
    "mixing_weights",
    "nll",
    "parameter_groups",
    "perturb",
    "recalibrate_run",
    "reliability_bins",
    "resnet",
    "resnext29",
    "sample_augmix",
    "threshold_run",
    "train",
    "vit",
    "wide_resnet",
    "write_report",
]


if not TYPE_CHECKING:  # a type checker that saw this function would take any name for a public one

    def __getattr__(name: str) -> Any:
        if name not in _ROOM_OF:
            raise AttributeError(f"module 'counterpoint' has no attribute {name!r}")
        value = getattr(import_module(f"counterpoint.{_ROOM_OF[name]}"), name)
        globals()[name] = value  # so that this function is called only once per name
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__} - {"Any", "TYPE_CHECKING", "import_module"})
