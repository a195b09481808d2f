"""How a user's own images are read and split, as a value."""

from dataclasses import dataclass

from counterpoint.errors import InputError
from counterpoint.setting_types import settle


@dataclass(frozen=True)
class OwnImages:
    """What your images are turned into, and which of them are split off for validation and test.

    >>> from counterpoint.own_images import OwnImages
    >>> OwnImages(size=64).val  # 15 % of each class are for validation
    0.15
    """

    size: int = 224
    """The side of the square images in pixels. Each picture is resized until its shorter side has this length, and the
    middle square is kept. If you do not set it, `train --images` takes 64 for counterpoint's own networks."""
    grey: bool = False
    """Whether images are read as grey, with one channel; otherwise they are read in colour."""
    val: float = 0.15
    """The share of each class that becomes validation images, if your images have no validation part. With
    train_on=all, no validation images are split off."""
    test: float = 0.15
    """The share of each class that becomes test images, if your images have no parts at all."""
    split_seed: int = 0
    """The seed that decides which images become validation and test images."""

    def __post_init__(self) -> None:
        settle(self, "images.")
        if not 1 <= self.size <= 4096:
            raise InputError(f"images.size is {self.size}; it must be from 1 to 4,096 pixels")
        for name in ("val", "test"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"images.{name} is {getattr(self, name)}; it must be at least 0 and less than 1")
        if self.val + self.test >= 1:
            raise InputError(
                f"images.val is {self.val} and images.test is {self.test}, which leaves nothing to train on; "
                "together they must be less than 1"
            )
        if self.split_seed < 0:
            raise InputError(f"images.split_seed is {self.split_seed}; it must be 0 or more")
