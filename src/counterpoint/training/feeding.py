"""Where the images of a training lie, and how many steps' views are made together: both depend only on memory."""

import math

import torch

from counterpoint.config import Experiment
from counterpoint.data import LabelledImages, MappedSet

STEPS_AT_ONCE = {"cuda": 64, "cpu": 4}
"""The views of this many steps are made together, or of fewer steps if the views are large."""
_VIEW_BYTES = 1 << 29
_GPU_SHARE = 4  # images in a file go to a GPU whole if they take no more than one part in so many of its free memory


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
    views = experiment.members * experiment.batch_size * experiment.policy.views_per_step
    bytes_per_step = views * math.prod(image_shape) * torch.float32.itemsize
    return min(STEPS_AT_ONCE[device.type], max(1, _VIEW_BYTES // bytes_per_step))
