"""counterpoint's own networks by name."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

from counterpoint.errors import InputError, unknown, whole_number
from counterpoint.model_names import wide_resnet_size
from counterpoint.models.wanted import Wanted
from counterpoint.nn import resnet, resnext29, vit, wide_resnet
from counterpoint.nn.vit import ViT

_MAKERS: dict[str, tuple[Callable[..., nn.Module], tuple[str, ...]]] = {
    "resnext29": (resnext29, ("cardinality", "base_width")),
    "resnet": (resnet, ("depth", "width")),
    "vit": (vit, ("patch_size", "depth", "width", "heads")),
}
"""Each network's function and its options, which are whole numbers."""
_MOST = 10_000


def make_own(wanted: Wanted, generator: torch.Generator) -> nn.Module:
    """The plain network with weights that the generator draws."""
    maker, known = _maker(wanted.name)
    for key, value in wanted.options.items():
        _check_option(wanted.name, key, value, known)
    network = maker(wanted.num_classes, in_channels=wanted.in_channels, generator=generator, **wanted.options)
    if isinstance(network, ViT):
        network.check_size(*wanted.size)
    return network


def _maker(name: str) -> tuple[Callable[..., nn.Module], tuple[str, ...]]:
    if size := wide_resnet_size(name):
        depth, widen = size
        return partial(wide_resnet, depth=depth, widen=widen), ()
    return _MAKERS[name]


def _check_option(name: str, key: str, value: Any, known: tuple[str, ...]) -> None:
    if not known:
        raise InputError(f"{name} takes no model_options ({key}); its sizes are in its name")
    if key not in known:
        raise unknown(f"option of {name}", key, known)
    whole_number(f"model_options.{key}", value, 1, _MOST)
