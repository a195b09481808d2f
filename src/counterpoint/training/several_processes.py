"""What a training needs before its first step where several processes do it together."""

import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.parallel.group import copy_from_first, from_first
from counterpoint.parallel.world import World
from counterpoint.training.step import TrainState, steps_per_epoch, total_steps


def check_batches(experiment: Experiment, images: int, world: World) -> None:
    """Raise if a batch, also the smaller last one of an epoch, has fewer images than there are processes."""
    whole = min(experiment.batch_size, images)
    if whole < world.size:
        raise InputError(
            f"a batch has {whole} images (batch_size {experiment.batch_size}, {images:,} to train on), and each of the "
            f"{world.size} processes needs one; start fewer processes"
        )
    last = images % experiment.batch_size
    is_reached = total_steps(experiment, images) >= steps_per_epoch(experiment, images)
    if is_reached and 0 < last < world.size:
        raise InputError(
            f"the last batch of an epoch has {last} of the {images:,} images (batch_size {experiment.batch_size}), and "
            f"each of the {world.size} processes needs one; start fewer processes, or set another batch_size"
        )


@torch.no_grad()
def start_alike(state: TrainState, world: World) -> None:
    """Let all processes start from the state of the first, which has read the checkpoint that counts."""
    if world.is_alone:
        return
    tensors = state.tensors() if world.is_first else {}
    step, kinds = from_first(world, (state.step, {name: (t.shape, t.dtype) for name, t in tensors.items()}))
    device = state.sums.device
    copies = {
        name: tensors[name].detach().contiguous() if world.is_first else torch.empty(shape, dtype=dtype, device=device)
        for name, (shape, dtype) in kinds.items()
    }
    copy_from_first(world, list(copies.values()))
    if not world.is_first:
        state.restore(copies, step)
