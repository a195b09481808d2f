"""Image classifiers of transformers, by their name on the Hugging Face hub or from a folder.

Only transformers' own code is run. A run keeps the configuration, so that it is loaded without the hub or the folder.
"""

import sys
from collections.abc import Iterator, Mapping, Set
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, some, unknown
from counterpoint.models.checks import check_only_head_differs
from counterpoint.models.wanted import (
    ModelFacts,
    Wanted,
    library,
    making,
    one_line,
    published_normalisation,
    refuse_options,
)
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.processes import environment_with

SIZE_ADVICE = "set model_options.image_size={height}, and for smaller patches model_options.patch_size"

# They name code, kernels or files to load, or say how the weights are stored.
_UNSAFE = ("auto_map", "attn_implementation", "quantization_config", "custom_pipelines", "dtype", "torch_dtype")
_LABELS = ("num_labels", "id2label", "label2id")
_OURS = (*_LABELS, "num_channels", "model_type")


class ImageClassifier(nn.Module):
    """A model of transformers as a function from images to logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images_NCHW: Tensor) -> Tensor:
        logits_NK: Tensor = self.model(pixel_values=images_NCHW).logits
        return logits_NK


def describe(wanted: Wanted) -> ModelFacts:
    """The normalisation and the configuration of a model on the hub or in a folder, changed as asked."""
    transformers = library(wanted)
    try:
        values, _ = transformers.PretrainedConfig.get_config_dict(wanted.short)
        images = transformers.models.auto.image_processing_auto.get_image_processor_config(wanted.short)
    except (OSError, ValueError) as error:
        raise InputError(
            f"{wanted.name} is neither a folder with a config.json nor a model that can be downloaded "
            f"from the Hugging Face hub ({one_line(error)}); check the name and the connection"
        ) from None
    config = _configured(wanted, values, wanted.options)
    return ModelFacts(_normalisation(images, wanted.in_channels), _safe(config.to_dict()))


def make(wanted: Wanted, facts: ModelFacts) -> nn.Module:
    """The model that the configuration describes and, if asked for, the published weights of all but the head."""
    if facts.configuration is None:
        raise InputError(f"the run does not hold the configuration of {wanted.name}; train it again")
    config = _configured(wanted, facts.configuration, {})
    auto = library(wanted).AutoModelForImageClassification
    if wanted.pretrained:
        return ImageClassifier(_with_weights(auto, config, wanted))
    with making(wanted), offline():
        return ImageClassifier(auto.from_config(config, trust_remote_code=False))


def _with_weights(auto: Any, config: Any, wanted: Wanted) -> nn.Module:
    try:
        model, found = auto.from_pretrained(
            wanted.short,
            config=config,
            dtype=torch.float32,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError) as error:
        raise InputError(
            f"{wanted.name} has no weights as safetensors that can be downloaded: {one_line(error)}"
        ) from error
    heads = {theirs[0] for name, theirs, ours in found["mismatched_keys"] if ours[0] == wanted.num_classes}
    check_only_head_differs(wanted, found["mismatched_keys"], heads.pop() if len(heads) == 1 else 0)
    network: nn.Module = model
    _check_body(network, wanted, {*found["missing_keys"]}, {name for name, *_ in found["mismatched_keys"]})
    return network


def _check_body(network: nn.Module, wanted: Wanted, missing: Set[str], mismatched: Set[str]) -> None:
    """Raise if nothing got published weights, or only some of a part: it would be no more than half pretrained.

    The head may be new as a whole. A normalisation does no harm: its vectors begin as they should.
    """
    weights = {name for name, weight in network.named_parameters() if weight.dim() > 1}
    published = {name.partition(".")[0] for name in weights - missing - mismatched}
    drawn = (name for name in weights & missing if not published or name.partition(".")[0] in published)
    if names := sorted(drawn):
        raise InputError(
            f"the published weights do not fit {wanted.name} as it is asked for: there are none for {some(names, 3)}; "
            "leave the model_options out, or pretrained"
        )


def _configured(wanted: Wanted, values: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """The configuration object: `values` without what is not safe, changed by `options`, for the wanted classes."""
    transformers = library(wanted)
    kind = values.get("model_type")
    known = transformers.models.auto.modeling_auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES
    if kind == "timm_wrapper":
        raise InputError(f"{wanted.name} is a model of timm; name it timm/NAME")
    if kind not in known:
        raise InputError(
            f"{wanted.name} is of the type {kind!r}, for which transformers itself has no image classifier; code from "
            "elsewhere is never run"
        )
    refuse_options(wanted, (*_UNSAFE, *_OURS, *(key for key in wanted.options if key.startswith("_"))))
    with making(wanted):
        config, unused = transformers.CONFIG_MAPPING[kind].from_dict(
            {key: value for key, value in _safe(values).items() if key not in _LABELS},
            return_unused_kwargs=True,
            **{**options, "num_labels": wanted.num_classes},
        )
    if unused:
        raise unknown(f"option of {wanted.name}", next(iter(unused)), [k for k in config.to_dict() if k not in _OURS])
    if getattr(config, "num_channels", 3) != wanted.in_channels:
        if not hasattr(config, "num_channels"):
            raise InputError(
                f"{wanted.name} takes three channels, and these images have {wanted.in_channels}; choose "
                "a model of timm, or one of counterpoint's own"
            )
        config.num_channels = wanted.in_channels
    return config


def _safe(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as JSON has them, without private and unsafe ones, in nested configurations too."""
    by_name = {str(key): value for key, value in values.items()}
    kept = {key: value for key, value in by_name.items() if not key.startswith("_") and key not in _UNSAFE}
    return {key: _safe(value) if isinstance(value, Mapping) else value for key, value in kept.items()}


def _normalisation(images: Mapping[str, Any], channels: int) -> Normalisation:
    """That of the model's image processor. transformers' default is ours."""
    if images.get("do_normalize") is False:
        return Normalisation(0.0, 1.0)
    if "image_mean" not in images or "image_std" not in images:
        return NORMALISATION
    return published_normalisation(images["image_mean"], images["image_std"], channels)


@contextmanager
def offline() -> Iterator[None]:
    """Inside, the Hugging Face hub is not asked for anything.

    The environment variable works if the hub's library is imported later. If it is imported already, its own setting
    must be changed too.
    """
    constants = sys.modules.get("huggingface_hub.constants")
    was_offline = getattr(constants, "HF_HUB_OFFLINE", None)
    with environment_with({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}):
        if constants is not None:
            constants.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]
        try:
            yield
        finally:
            if constants is not None:
                constants.HF_HUB_OFFLINE = was_offline  # type: ignore[attr-defined]
