"""Labelled images in a file. Memory holds only the images that are being read."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from counterpoint.data.sets import ImageSet, in_short
from counterpoint.errors import InputError
from counterpoint.threads import read_ahead


@dataclass(frozen=True, eq=False, repr=False)
class MappedSet:
    """Labelled images in a memory-mapped file: like an ImageSet, but possibly larger than memory.

    >>> import torch
    >>> from counterpoint.data import MappedSet
    >>> pixels, labels = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.tensor([0, 1])
    >>> images = MappedSet(pixels, torch.tensor([1, 3]), torch.arange(2), labels, ("cat", "dog"))
    >>> len(images), images.image_shape
    (2, (3, 8, 8))
    """

    pixels_RCHW: Tensor
    """All the rows of the file, uint8."""
    rows_N: Tensor
    """Where each image lies."""
    numbers_N: Tensor
    """Each image's number in its part of the source, before anything was split off. Random draws depend on this number.
    """
    labels_N: Tensor
    classes: tuple[str, ...]
    groups_N: Tensor | None = None
    """Which images belong together, such as those of one patient: they have equal numbers. None if none do."""

    def __post_init__(self) -> None:
        if not len(self.rows_N) == len(self.numbers_N) == len(self.labels_N):
            raise InputError(
                f"there are {len(self.rows_N)} rows, {len(self.numbers_N)} numbers and {len(self.labels_N)} labels; "
                "there must be one of each per image"
            )

    def __repr__(self) -> str:
        return in_short(self)

    def __len__(self) -> int:
        return len(self.rows_N)

    def __getitem__(self, places: slice) -> Tensor:
        return self._copy(self.rows_N[places])

    @property
    def image_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.pixels_RCHW.shape[1:]
        return channels, height, width

    def batch(self, places_B: Tensor) -> Tensor:
        """The pixels of these images, by their places in this set, as uint8 (B, C, H, W) in memory."""
        return self._copy(self.rows_N[places_B])

    def batches(self, places: Iterable[Tensor], *, pinned: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
        """Each batch, read from the file while the one before it is in use."""
        return read_ahead(
            lambda places_B: self.batch(places_B).pin_memory() if pinned else self.batch(places_B), places
        )

    @property
    def images_NCHW(self) -> Tensor:  # noqa: N802 (named as in ImageSet)
        """All images as one tensor: over the file where they lie side by side there, otherwise a copy in memory."""
        if not len(self):
            return self.pixels_RCHW[:0]
        first = int(self.rows_N[0])
        if torch.equal(self.rows_N, torch.arange(first, first + len(self))):
            return self.pixels_RCHW[first : first + len(self)]
        return self._copy(self.rows_N)

    def _copy(self, rows_B: Tensor) -> Tensor:
        # NumPy copies whole rows; torch would go through them in small steps, several times slower.
        return torch.from_numpy(self.pixels_RCHW.numpy()[rows_B.numpy()])

    def to(self, device: torch.device | str) -> ImageSet:
        return ImageSet(self.images_NCHW.to(device), self.labels_N.to(device), self.classes, self.numbers_N.to(device))

    def first(self, count: int | None) -> "MappedSet":
        return self.select(torch.arange(len(self))[:count])

    def select(self, places: Tensor) -> "MappedSet":
        """Some of the images, by their places or as a mask. No pixel is read."""
        rows_N, numbers_N, labels_N = (column[places] for column in (self.rows_N, self.numbers_N, self.labels_N))
        groups_N = None if self.groups_N is None else self.groups_N[places]
        return MappedSet(self.pixels_RCHW, rows_N, numbers_N, labels_N, self.classes, groups_N)
