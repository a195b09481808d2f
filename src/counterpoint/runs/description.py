"""What a run says of itself in run.json: the images that its network is for, and how long it is trained."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any

from counterpoint.config import MOST_STEPS
from counterpoint.normalisation import Normalisation
from counterpoint.records.codec import FieldError, Range, decode, encode

Size = Annotated[int, Range(1, 1 << 16)]


@dataclass(frozen=True)
class Description:
    """What a run's network must know about its training images, and the number of training steps."""

    classes: tuple[str, ...]
    channels: Size
    height: Size
    width: Size
    training_images: Annotated[int, Range(1, 2**53)]
    total_steps: Annotated[int, Range(1, MOST_STEPS)]
    normalisation: Normalisation
    model_config: Mapping[str, Any] | None = None
    """The configuration of a model of transformers, so that the hub is not asked for it again."""
    images_key: str | None = None
    """Of a user's own images, a hash of those that are trained on."""

    def __post_init__(self) -> None:
        self.normalisation.check_channels(self.channels)

    def problem(self) -> str:
        return "" if self.classes else "classes is empty"


def read_description(values: Any) -> Description:
    """The description in run.json, which may be a stranger's: FieldError or InputError if it is none.

    What a later version added is refused: it may change what the network has to see.
    """
    description = decode(Description, values)
    if others := values.keys() - {field.name for field in fields(Description)}:
        raise FieldError(f"{min(others)} is not known")
    return description


def description_as_json(description: Description) -> dict[str, Any]:
    """What run.json holds. In a model's configuration, JSON makes texts of all keys."""
    values: dict[str, Any] = json.loads(json.dumps(encode(description)))
    return values
