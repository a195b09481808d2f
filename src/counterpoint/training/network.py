"""The network of an experiment, with its initial weights."""

from typing import Any

from torch import nn

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, resnet, resnext29
from counterpoint.seeding import Stream


def build_model(experiment: Experiment, num_classes: int, in_channels: int, seed: int) -> Ensemble:
    """The experiment's ensemble (of one member for a plain network); its weights depend on the seed alone."""
    common: dict[str, Any] = {
        "num_members": experiment.num_members,
        "in_channels": in_channels,
        "batchnorm": experiment.batchnorm,
        "init_std": experiment.init_std,
        "generator": Stream(seed, "initial weights").generator(),
    }
    model: nn.Module
    if experiment.model == "resnext29":
        model = resnext29(num_classes, cardinality=experiment.cardinality, base_width=experiment.base_width, **common)
    else:
        model = resnet(num_classes, depth=experiment.depth, width=experiment.width, **common)
    return model if isinstance(model, Ensemble) else Ensemble(model)
