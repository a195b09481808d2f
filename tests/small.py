"""The small data sets and small experiments that tests share.

Pixels come from a counter-based stream, so that they are the same everywhere.
"""

from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from counterpoint.config import Experiment
from counterpoint.data.digits import load_digits
from counterpoint.data.sets import DataSet, ImageSet, LabelledImages
from counterpoint.data.split import parts_of
from counterpoint.experiments import find_experiment
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream

ALL_AUGMENTATIONS = MemberPolicy(
    augmix=AugMix((1.0, 3.0)),
    adversarial=Adversarial((0.05, 0.1), "shuffled"),
    stochastic_depth=StochasticDepth((0.1, 0.2)),
)
TINY = Experiment(
    "tiny",
    "digits",
    train_on="all",
    model="resnet",
    width=4,
    num_members=2,
    epochs=3,
    batch_size=8,
    policy=ALL_AUGMENTATIONS,
)
QUICK = replace(find_experiment("digits/quickstart"), train_on="all", epochs=1, batch_size=128, width=4, init_std=0.5)
"""The quickstart's ensemble on all training images, in eleven steps."""
FOUR_STEPS = replace(QUICK, steps=4, batch_size=32)


def noise(count: int, size: int = 8, channels: int = 3, *, name: str = "tiny", below: int = 256) -> Tensor:
    """uint8 images (count, channels, size, size) of noise; another name is other noise."""
    values = Stream(0, name).integers(torch.arange(count), channels * size * size, below)
    return values.view(count, channels, size, size).to(torch.uint8)


def noise_data(
    count: int, classes: int, *, size: int = 8, channels: int = 3, name: str = "tiny", test: int | None = None
) -> DataSet:
    """Noise that takes its classes in turn; the first `test` images, or all of them, are the test images too."""
    images = _in_turn(noise(count, size, channels, name=name), classes)
    return DataSet(name, images, images.select(torch.arange(count if test is None else test)))


def coloured_data(count: int) -> DataSet:
    """Noise of 8×8 pixels that is brighter in red, green or blue: three classes that can be learned."""
    pixels = noise(count, below=200)
    numbers = torch.arange(count)
    pixels[numbers, numbers % 3] += 55
    images = _in_turn(pixels, 3)
    return DataSet("tiny", images, images)


def held_out_images(data: DataSet, experiment: Experiment) -> LabelledImages:
    """What a run on the split validates on."""
    images = parts_of(data, experiment).validation
    assert images is not None
    return images


def few_digits(test: int, name: str = "digits") -> DataSet:
    """The digits with their first `test` test images only."""
    data = _digits()
    return replace(data, name=name, test=data.test.select(torch.arange(test)))


_digits = cache(load_digits)


def _in_turn(pixels_NCHW: Tensor, classes: int) -> ImageSet:
    return ImageSet(pixels_NCHW, torch.arange(len(pixels_NCHW)) % classes, tuple("abcdefghij"[:classes]))
