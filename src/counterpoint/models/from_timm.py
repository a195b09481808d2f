"""Models of timm, from its registry. Published weights are read as safetensors only."""

import inspect
from typing import Any

from torch import nn

from counterpoint.errors import InputError
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

SIZE_ADVICE = (
    "a model with a fixed size has model_options.img_size={height}, and transformers for smaller patches "
    "model_options.patch_size; others need larger images"
)


def describe(wanted: Wanted) -> ModelFacts:
    """The normalisation that timm has for the model."""
    published = _published(library(wanted), wanted)
    return ModelFacts(published_normalisation(published.mean, published.std, wanted.in_channels))


def make(wanted: Wanted, _: ModelFacts) -> nn.Module:
    """The model with a head for our classes and, if asked for, the published weights of the rest."""
    timm = library(wanted)
    published = _published(timm, wanted)
    refuse_options(wanted, (*inspect.signature(timm.create_model).parameters, "num_classes", "in_chans"))
    # A local file is what timm prefers over every other source. It adapts the first and the last layer itself.
    overlay = {"file": _download(wanted, published), "custom_load": False} if wanted.pretrained else None
    with making(wanted):
        network: nn.Module = timm.create_model(
            wanted.short,
            pretrained=wanted.pretrained,
            pretrained_cfg_overlay=overlay,
            num_classes=wanted.num_classes,
            in_chans=wanted.in_channels,
            **wanted.options,
        )
    return network


def _published(timm: Any, wanted: Wanted) -> Any:
    """What timm says of the weights. A name is that of an architecture, or ARCHITECTURE.WEIGHTS."""
    architecture, _, weights = wanted.short.partition(".")
    if architecture not in (known := timm.list_models()):
        raise no_such_model(wanted, known, "timm.list_models()")
    published = timm.models.get_arch_pretrained_cfgs(architecture)
    if weights and wanted.short not in published:
        raise no_such_model(wanted, list(published), f"timm.list_pretrained('{architecture}.*')")
    return timm.get_pretrained_cfg(wanted.short)


def _download(wanted: Wanted, published: Any) -> str:
    """The path of the weights' safetensors file, from the cache or from timm's place on the Hugging Face hub."""
    from huggingface_hub import hf_hub_download

    file = published.hf_hub_filename or "model.safetensors"
    if not published.hf_hub_id or not file.endswith(".safetensors"):
        raise InputError(f"timm has no weights for {wanted.name} as safetensors; leave pretrained out")
    repository, _, revision = published.hf_hub_id.partition("@")
    try:
        return str(hf_hub_download(repository, file, revision=revision or None))
    except Exception as error:  # no network, no such file, no access
        raise InputError(
            f"the weights of {wanted.name} ({file} of {repository}) cannot be downloaded: {one_line(error)}"
        ) from error
