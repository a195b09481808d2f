"""The network of an experiment, with its initial weights."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.model_names import is_own
from counterpoint.models import ModelFacts, describe_model, make_network, wanted_of
from counterpoint.nn import Ensemble, batch_ensemble, deep_ensemble
from counterpoint.seeding import Stream
from counterpoint.training.memory import check_weights, is_large

WithWeights = Callable[[nn.Module], nn.Module]


def as_it_is(network: nn.Module) -> nn.Module:
    return network


def build_model(
    experiment: Experiment,
    num_classes: int,
    in_channels: int,
    seed: int,
    *,
    size: tuple[int, int] = (32, 32),
    facts: ModelFacts | None = None,
    restored: bool = False,
    trusted_model: str | None = None,
    with_weights: WithWeights = as_it_is,
) -> Ensemble:
    """The experiment's ensemble (of one member for a plain network); its weights depend on the seed alone.

    They are drawn from Stream(seed, "initial weights"). In a deep ensemble member i draws from Stream(seed, "initial
    weights", member=i), and is otherwise made like a single network. So member 0 starts from the weights of the single
    network with the same seed, and the first members of a larger ensemble are those of a smaller one.

    `facts` are what a run has kept of its model. With `restored` a checkpoint's weights will take the place of the
    initial ones, so that no published weights are fetched. `trusted_model` is the model's name if it is a function of
    the user's own, which is imported only then. `with_weights` gives a plain network other weights, before members are
    made of it.
    """
    wanted = wanted_of(experiment, num_classes, in_channels, size, pretrained=experiment.pretrained and not restored)
    facts = facts or describe_model(wanted)
    if is_own(experiment.model) and is_large(experiment):
        with torch.device("meta"):  # takes no memory
            counted = make_network(wanted, facts, torch.Generator("cpu"), trusted_model)
        check_weights(counted, experiment.members if experiment.ensemble == "deep" else 1)
    generators = [Stream(seed, "initial weights", member=i).generator() for i in range(experiment.members)]
    networks = (with_weights(make_network(wanted, facts, generator, trusted_model)) for generator in generators)
    if experiment.ensemble == "deep":
        ensemble = deep_ensemble(lambda: next(networks), experiment.members)
    elif experiment.num_members is None:
        ensemble = Ensemble(next(networks))
    else:
        ensemble = _batch_ensemble(next(networks), experiment, in_channels, size, generators[0])
    _check_branches(ensemble, experiment)
    return ensemble


def _batch_ensemble(
    network: nn.Module, experiment: Experiment, in_channels: int, size: tuple[int, int], generator: torch.Generator
) -> Ensemble:
    """Our own networks are known to convert. Others are tried, which also finds layers that cannot have members."""
    options: dict[str, Any] = {"init_std": experiment.init_std, "batchnorm": experiment.batchnorm}
    if not is_own(experiment.model):
        options["example_input"] = torch.randn(2, in_channels, *size, generator=torch.Generator().manual_seed(0))
    return batch_ensemble(network, experiment.members, generator=generator, **options)


def _check_branches(ensemble: Ensemble, experiment: Experiment) -> None:
    if experiment.policy.stochastic_depth and not ensemble.num_blocks:
        raise InputError(
            f"{experiment.model} has no residual branches that stochastic depth can drop; set "
            "policy.stochastic_depth=none, or choose resnext29, resnet, wide-resnet-28-10 or vit"
        )
