"""The network of an experiment with its initial weights, and what a run has to keep of it to make it again."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.data import Parts
from counterpoint.devices import total_memory
from counterpoint.errors import InputError
from counterpoint.model_names import is_own, library_of, wide_resnet_size
from counterpoint.models import ModelFacts, Wanted, describe_model, make_network, wanted_of
from counterpoint.nn import Ensemble, batch_ensemble, deep_ensemble
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run, keep_description
from counterpoint.seeding import Stream
from counterpoint.training.batches import total_steps
from counterpoint.training.memory import bytes_of_weights, gib

WithWeights = Callable[[nn.Module], nn.Module]

_LARGE = 256
"""A network with a size above this is counted before it is made. That takes seconds, and smaller ones fit anywhere."""


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
    _check_size(experiment, wanted)
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


def _check_size(experiment: Experiment, wanted: Wanted) -> None:
    """Raise if a large network of ours would not fit into this machine's memory."""
    named = wide_resnet_size(experiment.model) or ()
    sizes = (experiment.cardinality, experiment.base_width, experiment.depth, experiment.width, experiment.members)
    options = (value for value in experiment.model_options.values() if isinstance(value, int))
    if not is_own(experiment.model) or max(*sizes, *named, *options) <= _LARGE:
        return
    with torch.device("meta"):  # takes no memory
        counted = make_network(wanted, ModelFacts(), torch.Generator("cpu"))
    needed = (experiment.members if experiment.ensemble == "deep" else 1) * bytes_of_weights(counted)
    if needed > (there := total_memory(torch.device("cpu"))):
        raise InputError(
            f"the network's weights take {gib(needed)}, but this machine has {gib(there)} of memory; make "
            "the network smaller, or have fewer members"
        )


def _check_branches(ensemble: Ensemble, experiment: Experiment) -> None:
    if experiment.policy.stochastic_depth and not ensemble.num_blocks:
        raise InputError(
            f"{experiment.model} has no residual branches that stochastic depth can drop; set "
            "policy.stochastic_depth=none, or choose resnext29, resnet, wide-resnet-28-10 or vit"
        )


def describe(experiment: Experiment, parts: Parts, facts: ModelFacts | None = None) -> Description:
    """What a run of the experiment has to keep. Without `facts` the library that the model is of is asked for them."""
    channels, height, width = parts.train.image_shape
    if facts is None:
        size = (height, width)
        facts = describe_model(wanted_of(experiment, len(parts.train.classes), channels, size, pretrained=False))
    images = len(parts.train)
    return Description(
        classes=parts.train.classes,
        channels=channels,
        height=height,
        width=width,
        training_images=images,
        total_steps=total_steps(experiment, images),
        normalisation=facts.normalisation,
        model_config=facts.configuration,
        images_key=parts.keys.get("train"),
    )


def describe_run(run: Run, parts: Parts) -> Run:
    """The run with its description in run.json, which is added where an earlier version began the run.

    Images that do not fit the description are refused. So is a run of a library's model without one, since the library
    would ask its hub, and a run is loaded from its own files.
    """
    is_described = "description" in run.record
    if not is_described and library_of(run.experiment.model):
        raise InputError(
            f"{run.folder / 'run.json'} does not describe the {run.experiment.model} that was trained; continue it "
            f"with `{run.command}`, which adds it"
        )
    return keep_description(run, describe(run.experiment, parts, _facts(run.description) if is_described else None))


def build_described(
    experiment: Experiment,
    description: Description,
    seed: int,
    *,
    restored: bool,
    trusted_model: str | None,
    with_weights: WithWeights = as_it_is,
) -> Ensemble:
    """The network that the description is of, made without asking anybody but the installed libraries."""
    return build_model(
        experiment,
        len(description.classes),
        description.channels,
        seed,
        size=(description.height, description.width),
        facts=_facts(description),
        restored=restored,
        trusted_model=trusted_model,
        with_weights=with_weights,
    )


@contextmanager
def fitting_weights(run: Run) -> Iterator[None]:
    """Inside, weights that do not fit say whose they are: another version of a library may make another network."""
    try:
        yield
    except RuntimeError as error:
        detail = str(error).strip().splitlines()[-1].strip()
        raise InputError(
            f"the weights in {run.folder} are not those of {run.experiment.model} as it is made now ({detail}); use "
            "what it was trained with: run.json has the versions under environment"
        ) from error


def _facts(description: Description) -> ModelFacts:
    return ModelFacts(description.normalisation, description.model_config)
