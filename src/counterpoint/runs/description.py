"""What a run says of itself in run.json: the images that its network is for, and how long it is trained."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from counterpoint.config import MOST_STEPS
from counterpoint.errors import InputError
from counterpoint.normalisation import Normalisation
from counterpoint.records.codec import Range, decode

Size = Annotated[int, Range(1, 1 << 16)]


@dataclass(frozen=True)
class Description:
    """What a run's network must know about its training images, and the number of training steps."""

    classes: tuple[str, ...]
    channels: int
    height: int
    width: int
    training_images: int
    total_steps: int
    normalisation: Normalisation
    model_config: Mapping[str, Any] | None = None
    """The configuration of a model of transformers, so that the hub is not asked for it again."""
    images_key: str | None = None
    """Of a user's own images, a hash of those that are trained on."""

    def __post_init__(self) -> None:
        self.normalisation.check_channels(self.channels)
        if not isinstance(self.model_config, Mapping | None):
            raise InputError(f"model_config is {type(self.model_config).__name__}; it must be an object")


def read_description(values: Any) -> Description:
    """The description in run.json, which may be a stranger's: FieldError, TypeError or InputError if it is none."""
    decode(_InJson, values)
    normalisation = Normalisation(**values["normalisation"])
    return Description(**values | {"classes": tuple(values["classes"]), "normalisation": normalisation})


def description_as_json(description: Description) -> dict[str, Any]:
    """What run.json holds: nothing of a configuration where the model has none, or of a key where images need none."""
    values: dict[str, Any] = json.loads(json.dumps(asdict(description)))
    return {key: value for key, value in values.items() if value is not None}


@dataclass(frozen=True)
class _InJson:
    """What must be there, and between which limits."""

    classes: tuple[str, ...]
    channels: Size
    height: Size
    width: Size
    training_images: Annotated[int, Range(1, 2**53)]
    total_steps: Annotated[int, Range(1, MOST_STEPS)]
    normalisation: Mapping[str, Any]

    def problem(self) -> str:
        return "" if self.classes else "classes is empty"
