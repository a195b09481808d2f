"""The network of an experiment, with its initial weights."""

from functools import partial
from typing import Any

from torch import nn

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, deep_ensemble, resnet, resnext29
from counterpoint.seeding import Stream


def build_model(experiment: Experiment, num_classes: int, in_channels: int, seed: int) -> Ensemble:
    """The experiment's ensemble (of one member for a plain network); its weights depend on the seed alone.

    They are drawn from Stream(seed, "initial weights"). In a deep ensemble member i draws from Stream(seed, "initial
    weights", member=i), and is otherwise made like a single network. So member 0 starts from the weights of the single
    network with the same seed, and the first members of a larger ensemble are those of a smaller one.
    """
    make = partial(_make, experiment, num_classes, in_channels)
    streams = [Stream(seed, "initial weights", member=i) for i in range(experiment.members)]
    if experiment.ensemble == "deep":
        networks = (make(None, stream) for stream in streams)
        return deep_ensemble(lambda: next(networks), experiment.members)
    model = make(experiment.num_members, streams[0])
    return model if isinstance(model, Ensemble) else Ensemble(model)


def _make(
    experiment: Experiment, num_classes: int, in_channels: int, num_members: int | None, stream: Stream
) -> nn.Module:
    """The experiment's network or, with `num_members`, a BatchEnsemble of it."""
    common: dict[str, Any] = {
        "num_members": num_members,
        "in_channels": in_channels,
        "batchnorm": experiment.batchnorm,
        "init_std": experiment.init_std,
        "generator": stream.generator(),
    }
    if experiment.model == "resnext29":
        return resnext29(num_classes, cardinality=experiment.cardinality, base_width=experiment.base_width, **common)
    return resnet(num_classes, depth=experiment.depth, width=experiment.width, **common)
