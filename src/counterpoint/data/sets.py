"""Labelled images: what a data set is made of, and a set whose images are one uint8 tensor in memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

import torch
from torch import Tensor

from counterpoint.errors import InputError

_NO_NUMBERS = torch.empty(0, dtype=torch.int64)


class Pixels(Protocol):
    """Images as uint8 (N, C, H, W), or something that gives them in slices."""

    def __len__(self) -> int: ...

    def __getitem__(self, places: slice, /) -> Tensor:
        """The pixels of consecutive images."""


class LabelledImages(Pixels, Protocol):
    """Images with their labels, in memory (`ImageSet`) or in a file (`MappedSet`).

    >>> from counterpoint.data import LabelledImages, load
    >>> images: LabelledImages = load("digits").test
    >>> images.image_shape
    (1, 32, 32)
    """

    @property
    def labels_N(self) -> Tensor: ...  # noqa: N802 (the shape is part of the name)

    @property
    def numbers_N(self) -> Tensor:  # noqa: N802
        """Each image's number in its data set, before anything was split off. Random draws depend on this number."""

    @property
    def groups_N(self) -> Tensor | None:  # noqa: N802
        """Which images belong together, such as those of one patient: they have equal numbers. None if none do."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def images_NCHW(self) -> Tensor:  # noqa: N802
        """All images, as uint8."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of an image."""

    def batches(self, places: Iterable[Tensor], *, pinned: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
        """For each batch its places in this set, and the pixels there.

        With `pinned`, pixels that are read from a file are in pinned memory, from which a GPU copies without the CPU.
        """

    def first(self, count: int | None) -> "LabelledImages":
        """The first `count` images, or all of them."""

    def select(self, places: Tensor) -> "LabelledImages":
        """Some of the images, by their places or as a mask."""

    def to(self, device: torch.device | str) -> "ImageSet":
        """All images on a device, whose memory must be large enough."""


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    """Labelled images in memory: uint8 pixels (N, C, H, W), int64 labels (N,), and the names of the classes.

    >>> import torch
    >>> from counterpoint.data import ImageSet
    >>> pixels = torch.zeros(4, 3, 32, 32, dtype=torch.uint8)
    >>> images = ImageSet(pixels, torch.tensor([0, 1, 0, 1]), classes=("cat", "dog"))
    >>> len(images), images.image_shape
    (4, (3, 32, 32))
    """

    images_NCHW: Tensor
    labels_N: Tensor
    classes: tuple[str, ...]
    numbers_N: Tensor = field(default_factory=lambda: _NO_NUMBERS)
    """The numbers that random draws depend on; 0 … N − 1 if they are not given."""

    def __post_init__(self) -> None:
        images, labels = self.images_NCHW, self.labels_N
        for name, values in (("images", images), ("labels", labels)):
            if not isinstance(values, Tensor):
                raise InputError(f"{name} are a {type(values).__name__}; they must be a tensor (torch.as_tensor)")
        if images.dtype != torch.uint8 or images.ndim != 4:
            raise InputError(f"images are {_describe(images)}; they must be uint8 (N, C, H, W)")
        if labels.dtype != torch.int64 or labels.ndim != 1:
            raise InputError(f"labels are {_describe(labels)}; they must be int64 (N,)")
        if len(images) != len(labels):
            raise InputError(
                f"there are {len(images)} images and {len(labels)} labels; there must be one label per image"
            )
        outside = labels[(labels < 0) | (labels >= len(self.classes))]
        if len(outside):
            raise InputError(f"label {int(outside[0])} is not between 0 and {len(self.classes) - 1}")
        if self.numbers_N is _NO_NUMBERS:
            object.__setattr__(self, "numbers_N", torch.arange(len(labels), device=labels.device))
        if len(self.numbers_N) != len(labels):
            raise InputError(
                f"numbers_N has {len(self.numbers_N)} entries for {len(labels)} images; there must be one "
                "number per image"
            )

    def __repr__(self) -> str:
        return in_short(self)

    def __len__(self) -> int:
        return len(self.labels_N)

    def __getitem__(self, places: slice) -> Tensor:
        return self.images_NCHW[places]

    @property
    def groups_N(self) -> None:  # noqa: N802
        """Images in memory are those of a data set that has a name, and are not in groups."""

    @property
    def image_shape(self) -> tuple[int, int, int]:
        channels, height, width = self.images_NCHW.shape[1:]
        return channels, height, width

    def batches(self, places: Iterable[Tensor], *, pinned: bool = False) -> Iterator[tuple[Tensor, Tensor]]:
        del pinned  # nothing is read from a file
        for places_B in places:
            yield places_B, self.images_NCHW[places_B]

    def to(self, device: torch.device | str) -> "ImageSet":
        images_NCHW, labels_N, numbers_N = (t.to(device) for t in (self.images_NCHW, self.labels_N, self.numbers_N))
        return ImageSet(images_NCHW, labels_N, self.classes, numbers_N)

    def first(self, count: int | None) -> "ImageSet":
        return ImageSet(self.images_NCHW[:count], self.labels_N[:count], self.classes, self.numbers_N[:count])

    def select(self, places: Tensor) -> "ImageSet":
        return ImageSet(self.images_NCHW[places], self.labels_N[places], self.classes, self.numbers_N[places])


@dataclass(frozen=True)
class DataSet:
    """A data set with a name. It has training images and test images, and no validation images.

    >>> from counterpoint.data import load
    >>> digits = load("digits")
    >>> len(digits.train), len(digits.test)
    (1347, 450)
    """

    name: str
    train: ImageSet
    test: ImageSet
    reported: Literal["validation", "test"] = "validation"
    """The part on which a run on the split is measured. For CIFAR it is the validation images, as in the paper."""


def in_short(images: LabelledImages) -> str:
    """What a set prints: its size, not its pixels."""
    shape = "×".join(map(str, images.image_shape))
    return f"<{type(images).__name__}: {len(images):,} images of {shape}, {len(images.classes)} classes>"


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
