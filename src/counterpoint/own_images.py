"""How a user's own images are read and split, as a value."""

from dataclasses import dataclass

from counterpoint.errors import InputError


@dataclass(frozen=True)
class OwnImages:
    """What every image becomes, and what is split off where the images have no parts of their own."""

    size: int = 224
    """The pixels of a side: images are resized by their shorter side, and the middle square is taken."""
    grey: bool = False
    """Whether images are read in grey; all others are in colour."""
    val: float = 0.15
    """The share of each class that is split off the training images to validate on, if no images are given for it.
    Nothing is split off with train_on=all."""
    test: float = 0.15
    """The share of each class that is split off to test on, of images that have no parts at all."""
    split_seed: int = 0
    """Decides which images are split off."""

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 4096:
            raise InputError(f"images.size is {self.size}; it must be from 1 to 4,096 pixels")
        for name in ("val", "test"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"images.{name} is {getattr(self, name)}; it must be at least 0 and less than 1")
        if self.val + self.test >= 1:
            raise InputError(
                f"images.val is {self.val} and images.test is {self.test}, which leaves nothing to train on"
            )
        if self.split_seed < 0:
            raise InputError(f"images.split_seed is {self.split_seed}; it must be 0 or more")
