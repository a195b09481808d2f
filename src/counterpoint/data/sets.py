"""A data set in memory: images as one uint8 tensor, labels as another."""

from dataclasses import dataclass

import torch
from torch import Tensor

from counterpoint.errors import InputError


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Labelled images. N images, C channels, H × W pixels."""

    images_NCHW: Tensor
    labels_N: Tensor
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        images, labels = self.images_NCHW, self.labels_N
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

    def __len__(self) -> int:
        return len(self.labels_N)

    def to(self, device: torch.device | str) -> "ImageSet":
        return ImageSet(self.images_NCHW.to(device), self.labels_N.to(device), self.classes)

    def first(self, count: int | None) -> "ImageSet":
        """The first `count` images, or all of them, without a copy."""
        return ImageSet(self.images_NCHW[:count], self.labels_N[:count], self.classes)

    def select(self, indices: Tensor) -> "ImageSet":
        return ImageSet(self.images_NCHW[indices], self.labels_N[indices], self.classes)


@dataclass(frozen=True)
class DataSet:
    name: str
    train: ImageSet
    test: ImageSet


def _describe(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} {tuple(tensor.shape)}"
