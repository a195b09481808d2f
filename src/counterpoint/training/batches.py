"""The batches of a training: how many there are, where their images lie, and what each member sees of them.

A step's images and views depend only on (experiment, seed, step).
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from counterpoint.augment.views import Views, sample_views
from counterpoint.config import Experiment
from counterpoint.data import LabelledImages, MappedSet
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.parallel.world import ALONE, World
from counterpoint.seeding import Stream

STEPS_AT_ONCE = {"cuda": 64, "cpu": 4}
"""The views of this many steps are made together, or of fewer steps if the views are large."""
_VIEW_BYTES = 1 << 29
_GPU_SHARE = 4  # images in a file go to a GPU whole if they take no more than one part in so many of its free memory


@dataclass(frozen=True)
class Batch:
    """The input of one step: the images' numbers in the data set, their labels, and each member's views of them.

    Of several processes each has some of the step's images.
    """

    numbers_B: Tensor
    labels_B: Tensor
    views: Views
    share: float = 1.0
    """How large a part of the step's views these are."""

    def map(self, change: Callable[[Tensor], Tensor]) -> "Batch":
        """The batch with every tensor changed."""
        numbers_B, labels_B, views = change(self.numbers_B), change(self.labels_B), self.views.map(change)
        return replace(self, numbers_B=numbers_B, labels_B=labels_B, views=views)

    def of_member(self, index: int) -> "Batch":
        """The batch as one member sees it."""
        return replace(self, views=self.views.of_member(index), share=self.share / len(self.views.views_MBCHW))

    @property
    def tensors(self) -> list[Tensor]:
        """Every tensor, in an order that is the same for batches of one policy."""
        return [self.numbers_B, self.labels_B, *self.views.tensors]


def steps_per_epoch(experiment: Experiment, images: int) -> int:
    """The steps of an epoch. Its last, smaller batch is kept (docs/paper.md, 11)."""
    return math.ceil(images / experiment.batch_size)


def total_steps(experiment: Experiment, images: int) -> int:
    """The steps of a whole training on `images` images."""
    return experiment.steps or experiment.epochs * steps_per_epoch(experiment, images)


def epoch_batches(
    images: LabelledImages,
    experiment: Experiment,
    *,
    device: torch.device | None = None,
    seed: int,
    epoch: int,
    first: int = 0,
    at_once: int = 1,
    num_blocks: int,
    normalisation: Normalisation = NORMALISATION,
    dtype: torch.dtype = torch.float32,
    world: World = ALONE,
) -> Iterator[Batch]:
    """The batches of an epoch on the device, from its step `first` on. The device is by default where the images are.

    The views of `at_once` steps are made together, which changes nothing but the speed. Of several processes each gets
    its share of every batch, with the views that these images have in one process.
    """
    device, size = device or images.labels_N.device, experiment.batch_size
    order = Stream(seed, "order", epoch).permutation(len(images), images.labels_N.device)
    first_step = epoch * steps_per_epoch(experiment, len(images)) + first
    left, here = len(images) - first * size, world.count(size)
    mine = torch.cat([places[world.share(len(places))] for places in order[first * size :].split(size)])
    chunks = mine.split(at_once * here)
    for places, images_BCHW in images.batches(chunks, pinned=device.type == "cuda"):
        numbers, labels = (values[places].to(device) for values in (images.numbers_N, images.labels_N))
        views = sample_views(
            images_BCHW.to(device, non_blocking=True),
            experiment.policy,
            num_members=experiment.members,
            indices_B=numbers,
            steps_B=first_step + torch.arange(len(places), device=device) // here,
            seed=seed,
            epoch=epoch,
            num_blocks=num_blocks,
            normalisation=normalisation,
            dtype=dtype,
        )
        first_step += at_once
        for in_step in (slice(i, i + here) for i in range(0, len(places), here)):
            share = len(labels[in_step]) / min(size, left)
            left -= size
            yield Batch(numbers[in_step], labels[in_step], views.select(in_step), share)


def place(images: LabelledImages, device: torch.device) -> LabelledImages:
    """The images where their batches are best taken from.

    Those in memory go to the device. Those in a file stay there, unless a GPU has plenty of room for them.
    """
    if isinstance(images, MappedSet) and (device.type != "cuda" or not _has_room(images, device)):
        return images
    return images.to(device)


def _has_room(images: LabelledImages, device: torch.device) -> bool:
    free, _ = torch.cuda.mem_get_info(device)
    return len(images) * math.prod(images.image_shape) <= free // _GPU_SHARE


def steps_at_once(experiment: Experiment, image_shape: tuple[int, int, int], device: torch.device) -> int:
    """How many steps' views are made together."""
    per_step = bytes_of_views(experiment, image_shape, experiment.batch_size)
    return min(STEPS_AT_ONCE[device.type], max(1, _VIEW_BYTES // per_step))


def bytes_of_views(experiment: Experiment, image_shape: tuple[int, int, int], batch: int) -> int:
    """What the views of one step take."""
    views = experiment.members * batch * experiment.policy.views_per_step
    return views * math.prod(image_shape) * torch.float32.itemsize
