"""A training's memory: whether weights and views fit, where images lie, and how many steps' views are made together."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.data import LabelledImages, MappedSet
from counterpoint.devices import total_memory
from counterpoint.errors import InputError, is_out_of_memory
from counterpoint.parallel.world import ALONE, World

STEPS_AT_ONCE = {"cuda": 64, "cpu": 4}
"""The views of this many steps are made together, or of fewer steps if the views are large."""
_VIEW_BYTES = 1 << 29
_GPU_SHARE = 4  # images in a file go to a GPU whole if they take no more than one part in so many of its free memory


def check_training(
    network: nn.Module,
    experiment: Experiment,
    image_shape: tuple[int, int, int],
    images: int,
    device: torch.device,
    world: World = ALONE,
) -> None:
    """Raise if the weights with gradients and momentum, and one step's views, alone exceed the device's memory.

    Of several processes each makes the views of its share of the batch.
    """
    weights = bytes_of_weights(network) + bytes_of_updates(network, experiment)
    needed = weights + bytes_of_views(experiment, image_shape, world.count(min(experiment.batch_size, images)))
    if needed > (there := total_memory(device)):
        raise InputError(
            f"a step needs more memory than the {gib(there)} of {device}: {gib(weights)} for the weights, their "
            f"gradients and momentum, and {gib(needed - weights)} for the views; {_smaller(experiment)}"
        )


@contextmanager
def enough_memory(experiment: Experiment, device: torch.device) -> Iterator[None]:
    """Inside, what torch or Python say when memory is used up becomes an error that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(
            f"training needs more memory than {device} has left; close other programs and give the same command "
            "again, which continues from the last checkpoint; --less-memory saves memory, takes longer and changes "
            f"nothing else; or {_smaller(experiment)}"
        ) from error


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


def _smaller(experiment: Experiment) -> str:
    return (
        f"in a new run lower batch_size (now {experiment.batch_size:,}), num_members (now {experiment.members:,}), or "
        "the size of the network or of the images"
    )


def bytes_of_updates(network: nn.Module, experiment: Experiment) -> int:
    """What gradients and momentum take."""
    trained = sum(p.numel() * p.element_size() for p in network.parameters() if p.requires_grad)
    return trained * (2 if experiment.momentum else 1)


def bytes_of_views(experiment: Experiment, image_shape: tuple[int, int, int], batch: int) -> int:
    """What the views of one step take."""
    views = experiment.members * batch * experiment.policy.views_per_step
    return views * math.prod(image_shape) * torch.float32.itemsize


def bytes_of_weights(network: nn.Module) -> int:
    """What the network itself takes. It may be on the meta device."""
    return sum(tensor.numel() * tensor.element_size() for tensor in network.state_dict().values())


def gib(count: float) -> str:
    """Bytes in words."""
    return f"{count / 2**30:,.1f} GiB"
