"""One model of the conversion matrix, as a value, and the example inputs that the models take."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

ROWS = 2
CLASSES = 5
VOCABULARY = 99

Kind = Literal["vector", "image", "pixels", "video", "text", "audio"]
Inputs = tuple[Tensor, ...] | dict[str, Tensor]


@dataclass(frozen=True)
class Case:
    """A model that was not written for counterpoint, made small where its library allows it."""

    name: str
    family: str
    source: Literal["torchvision", "timm", "transformers"]
    kind: Kind
    make: Callable[[], nn.Module]
    inputs: Inputs
    logits: Callable[[Any], Tensor] | None = None
    exclude: tuple[str, ...] = ()
    """Layers that take no part in the logits, as a user of this model would name them."""


def noise(*shape: int) -> Tensor:
    return torch.randn(ROWS, *shape, generator=torch.Generator().manual_seed(1))


def image(size: int) -> tuple[Tensor]:
    return (noise(3, size, size),)


def tokens(length: int) -> dict[str, Tensor]:
    """Token numbers from 3, since 0, 1 and 2 stand for padding, beginning and end in every configuration here."""
    ids_BT = torch.randint(3, VOCABULARY, (ROWS, length), generator=torch.Generator().manual_seed(1))
    return {"input_ids": ids_BT, "attention_mask": torch.ones_like(ids_BT)}


def call(model: nn.Module, inputs: Inputs) -> Any:
    """The model's output for inputs given by position or by name."""
    return model(**inputs) if isinstance(inputs, dict) else model(*inputs)


def logits_of(output: Any, logits: Callable[[Any], Tensor] | None) -> Tensor:
    """The logits of a plain model's output."""
    return logits(output) if logits else getattr(output, "logits", output)
