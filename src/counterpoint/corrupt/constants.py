"""The two tables of constants: CIFAR-C's for small images, ImageNet-C's for photographs."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from counterpoint.errors import one_of
from counterpoint.records.images import Constants

_LARGEST_SMALL_SIDE = 64
_FILES: dict[Constants, str] = {"cifar-c": "cifar_c.toml", "imagenet-c": "imagenet_c.toml"}


@dataclass(frozen=True)
class Table:
    """What a file of constants holds."""

    reference_side: int
    photograph_scale: float
    enlarge_photographs: bool
    frost_in_bytes: bool
    corruptions: dict[str, dict[str, list[Any]]]

    def arguments(self, name: str, severity: int) -> dict[str, Any]:
        """What the function of this corruption is called with."""
        return {key: values[severity - 1] for key, values in self.corruptions[name].items()}


def default_constants(height: int, width: int) -> Constants:
    """Which constants suit images of this size: CIFAR-C's for a shorter side of up to 64 pixels, ImageNet-C's above.

    >>> from counterpoint.corrupt import default_constants
    >>> default_constants(32, 32), default_constants(224, 224)
    ('cifar-c', 'imagenet-c')
    """
    return "cifar-c" if min(height, width) <= _LARGEST_SMALL_SIDE else "imagenet-c"


def choose_constants(constants: Constants | None, height: int, width: int) -> Constants:
    """These constants, or without any the default for the size; an unknown name raises."""
    if constants is None:
        return default_constants(height, width)
    return one_of("constants", constants, _FILES)


@cache
def read_table(constants: Constants) -> Table:
    text = files("counterpoint.corrupt").joinpath(_FILES[constants]).read_text(encoding="utf-8")
    loaded = tomllib.loads(text)
    settings = {key: value for key, value in loaded.items() if not isinstance(value, dict)}
    corruptions = {key: value for key, value in loaded.items() if isinstance(value, dict)}
    return Table(**settings, corruptions=corruptions)
