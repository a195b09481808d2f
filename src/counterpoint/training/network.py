"""The network of an experiment, with its initial weights."""

from typing import Any

import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.model_names import is_own
from counterpoint.models import ModelFacts, describe_model, make_network, wanted_of
from counterpoint.nn import Ensemble, batch_ensemble
from counterpoint.seeding import Stream


def build_model(
    experiment: Experiment,
    num_classes: int,
    in_channels: int,
    seed: int,
    *,
    size: tuple[int, int] = (32, 32),
    facts: ModelFacts | None = None,
    restored: bool = False,
    said: str | None = None,
) -> Ensemble:
    """The experiment's ensemble (of one member for a plain network); its weights depend on the seed alone.

    `facts` are what a run has kept of its model. With `restored` a checkpoint's weights will take the place of the
    initial ones, so that no published weights are fetched. `said` is the user's word for a function of his own.
    """
    wanted = wanted_of(experiment, num_classes, in_channels, size, pretrained=experiment.pretrained and not restored)
    generator = Stream(seed, "initial weights").generator()
    network = make_network(wanted, facts or describe_model(wanted), generator, said)
    _check_branches(network, experiment)
    if experiment.num_members is None:
        return Ensemble(network)
    options: dict[str, Any] = {"init_std": experiment.init_std, "batchnorm": experiment.batchnorm}
    if not restored and not is_own(experiment.model):  # our own networks are known to convert
        options["example_input"] = torch.randn(2, in_channels, *size, generator=torch.Generator().manual_seed(0))
    return batch_ensemble(network, experiment.num_members, generator=generator, **options)


def _check_branches(network: torch.nn.Module, experiment: Experiment) -> None:
    if experiment.policy.stochastic_depth and not getattr(network, "num_blocks", 0):
        raise InputError(
            f"{experiment.model} has no residual branches that stochastic depth can drop; set "
            "policy.stochastic_depth=none, or choose resnext29, resnet, wide-resnet-28-10 or vit"
        )
