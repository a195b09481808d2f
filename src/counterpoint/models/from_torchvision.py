"""Classification models of torchvision, from its registry. Published weights are loaded without unpickling objects."""

from typing import Any

import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.models.checks import check_only_head_differs
from counterpoint.models.wanted import (
    ModelFacts,
    Wanted,
    library,
    making,
    no_such_model,
    one_line,
    published_normalisation,
    refuse_options,
)

SIZE_ADVICE = "a transformer has model_options.image_size={height} (and patch_size); others need larger images"
_RESERVED = ("weights", "weights_backbone", "num_classes", "progress")


def describe(wanted: Wanted) -> ModelFacts:
    """The normalisation of the published weights. The models take three channels and nothing else."""
    models = _models(wanted)
    if wanted.in_channels != 3:
        raise InputError(
            f"{wanted.name} takes three channels, and these images have {wanted.in_channels}; torchvision has no "
            "option for that; choose a model of timm, which has, or one of counterpoint's own"
        )
    transforms = models.get_model_weights(wanted.short).DEFAULT.transforms()
    return ModelFacts(published_normalisation(transforms.mean, transforms.std, wanted.in_channels))


def make(wanted: Wanted, _: ModelFacts) -> nn.Module:
    """The model with a head for our classes and, if asked for, the published weights of the rest."""
    models = _models(wanted)
    refuse_options(wanted, _RESERVED)
    with making(wanted):
        network: nn.Module = models.get_model(
            wanted.short, weights=None, num_classes=wanted.num_classes, **wanted.options
        )
    if wanted.pretrained:
        _load(network, models.get_model_weights(wanted.short).DEFAULT, wanted)
    return network


def _models(wanted: Wanted) -> Any:
    """torchvision.models, if it has the model. Those for detection, segmentation or video are in other modules."""
    models = library(wanted).models
    known = models.list_models(module=models)
    if wanted.short not in known:
        raise no_such_model(wanted, known, "torchvision.models.list_models(module=torchvision.models)")
    return models


def _load(network: nn.Module, weights: Any, wanted: Wanted) -> None:
    """Load every published tensor but those of the classes, which are the ones of another shape."""
    try:
        published = weights.get_state_dict(weights_only=True, check_hash=True, map_location="cpu", progress=False)
    except Exception as error:  # no network, a damaged file
        raise InputError(
            f"the weights of {wanted.name} ({weights.url}) cannot be downloaded: {one_line(error)}"
        ) from error
    ours = network.state_dict()
    differing = [name for name in published if name in ours and published[name].shape != ours[name].shape]
    shapes: list[tuple[str, torch.Size, torch.Size]] = [(n, published[n].shape, ours[n].shape) for n in differing]
    check_only_head_differs(wanted, shapes, len(weights.meta["categories"]))
    kept = {name: ours[name] if name in differing else tensor for name, tensor in published.items()}
    with making(wanted):
        network.load_state_dict(kept)
