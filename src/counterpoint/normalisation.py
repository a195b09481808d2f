"""How pixels become what networks see (docs/paper.md, 7)."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Normalisation:
    """Pixels in [0, 1] less `mean`, divided by `std`; the same for every channel."""

    mean: float
    std: float

    @property
    def limits(self) -> tuple[float, float]:
        """What black and white become."""
        return (0 - self.mean) / self.std, (1 - self.mean) / self.std

    def apply(self, unit_images: "Tensor") -> "Tensor":
        """What networks see of pixels in [0, 1]."""
        return (unit_images - self.mean) / self.std

    def undo(self, seen_images: "Tensor") -> "Tensor":
        """The pixels again."""
        return seen_images * self.std + self.mean


NORMALISATION = Normalisation(mean=0.5, std=0.5)
