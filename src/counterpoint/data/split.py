"""Which training images are trained on and which are held out."""

from dataclasses import dataclass

import torch
from torch import Tensor

from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.errors import InputError
from counterpoint.seeding import Stream


@dataclass(frozen=True)
class Part:
    """Some of a data set's training images, with their numbers in the set, by which every draw is keyed."""

    images: ImageSet
    numbers_N: Tensor

    def __len__(self) -> int:
        return len(self.numbers_N)

    def to(self, device: torch.device) -> "Part":
        return Part(self.images.to(device), self.numbers_N.to(device))


def held_out_split(n_train: int, held_out: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """The numbers of the images to train on and of those to validate on, ascending; the seed alone decides."""
    if not 0 <= held_out < n_train:
        raise InputError(f"held_out is {held_out}; it must be at least 0 and less than the {n_train} training images")
    order = Stream(seed, "split").permutation(n_train)
    return order[held_out:].sort().values, order[:held_out].sort().values


def split_training_images(data: DataSet, experiment: Experiment) -> tuple[Part, Part]:
    """The part to train on and the part held out.

    With train_on="all" nothing is held out, otherwise a tenth (5,000 images of CIFAR). Of a small set more than a tenth
    is held out: 500 images, but no more than a third. Temperatures are fitted to these images. A few dozen would be too
    few, and so would images that the network all gets right.
    """
    kept, held_out = held_out_split(len(data.train), _count_held_out(data, experiment))
    return Part(data.train.select(kept), kept), Part(data.train.select(held_out), held_out)


def held_out_images(data: DataSet, experiment: Experiment) -> ImageSet:
    """The images of the part held out, without a copy of those to train on."""
    return data.train.select(held_out_split(len(data.train), _count_held_out(data, experiment))[1])


def count_training_images(data: DataSet, experiment: Experiment) -> int:
    """How many images the part to train on has."""
    return len(data.train) - _count_held_out(data, experiment)


def _count_held_out(data: DataSet, experiment: Experiment) -> int:
    count = len(data.train)
    return min(max(count // 10, 500), count // 3) if experiment.train_on == "split" else 0
