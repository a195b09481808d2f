"""Whether a training fits into memory, found out before its first step.

On a CPU a step is tried with a few images, because a system that runs out of memory kills the process without a
message. On a GPU torch raises an error instead, which `enough_memory` puts into words.
"""

import copy
import math
import warnings
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.devices import free_memory, total_memory
from counterpoint.errors import InputError, is_out_of_memory
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble
from counterpoint.nn.activations import Kept, measure_kept
from counterpoint.nn.one_member import only_member
from counterpoint.parallel.world import ALONE, World
from counterpoint.training.batches import bytes_of_views, steps_at_once
from counterpoint.training.engines import check_saving
from counterpoint.watching import SILENT, Watcher

_FEW = 2  # images: with one, BatchNorm may have a single value to normalise
_HELD_BESIDES = 8
"""Besides what autograd keeps, a step holds up to this many times its largest activation: gradients on their way, and
the copies that convolutions make. This was measured (docs/images.md, What it costs)."""
_LEAST_BATCH = 4  # smaller ones are not proposed, because BatchNorm needs images
_SIZES = range(96, 4096, 32)  # pixels, of images that are proposed; smaller ones have other defaults


def check_memory(
    network: Ensemble,
    experiment: Experiment,
    image_shape: tuple[int, int, int],
    images: int,
    *,
    device: torch.device,
    engine: str,
    less_memory: bool = False,
    member_by_member: bool = False,
    world: World = ALONE,
    watcher: Watcher = SILENT,
) -> bool:
    """Raise if the training does not fit into the device's memory, or if memory cannot be saved in the ways that are
    asked for. The result is whether to train with less_memory.

    The weights with gradients and what the optimiser keeps, and one step's views, must fit in any case. An eager step
    on a CPU is also tried, unless the network cannot be tried with a few images. counterpoint's own networks train with
    less_memory by themselves where a step would not fit without: the result has the same bits.
    """
    check_saving(network, experiment, less_memory=less_memory, member_by_member=member_by_member)
    batch = world.count(min(experiment.batch_size, images))  # of several processes each has its share
    _check_least(network, experiment, image_shape, batch, device)
    if device.type != "cpu" or engine != "eager":
        return less_memory
    free = free_memory() // world.local_size
    trial = Trial(network, experiment, image_shape, member_by_member)
    need = trial.need(batch, less_memory, free)
    if need is None or need.bytes(batch, less_memory) <= free:
        return less_memory
    at_least = need.bytes(batch, less_memory=True)
    if is_own(experiment.model) and at_least <= free:
        watcher.noted(
            f"a step needs about {gib(need.bytes(batch, less_memory))} of memory, and {gib(free)} are free; so "
            f"activations are computed again instead of kept (less_memory, --less-memory): that needs {gib(at_least)}, "
            "takes longer and changes nothing else"
        )
        return True
    less_memory = less_memory or is_own(experiment.model)
    raise InputError(_does_not_fit(trial, need, batch, less_memory, free, world))


def _check_least(
    network: Ensemble, experiment: Experiment, image_shape: tuple[int, int, int], batch: int, device: torch.device
) -> None:
    weights = bytes_of_weights(network) + bytes_of_updates(network, experiment)
    needed = weights + bytes_of_views(experiment, image_shape, batch)
    if needed > (there := total_memory(device)):
        raise InputError(
            f"a step needs more memory than the {gib(there)} of {device}: {gib(weights)} for the weights, their "
            f"gradients and the optimiser, and {gib(needed - weights)} for the views; {_smaller(experiment)}"
        )


@dataclass(frozen=True)
class Need:
    """What steps of any batch size need: what they keep grows evenly with each image."""

    experiment: Experiment
    image_shape: tuple[int, int, int]
    updates: int
    """Gradients, and what the optimiser keeps. The weights are there already."""
    few: Kept
    per_image: Kept

    def bytes(self, batch: int, less_memory: bool) -> float:
        return self.updates + self.views(batch) + self.activations(batch, less_memory)

    def activations(self, batch: int, less_memory: bool) -> float:
        kept = self.few.plus(self.per_image.times(batch - _FEW))
        return (kept.recomputed if less_memory else kept.everything) + _HELD_BESIDES * kept.largest

    def views(self, batch: int) -> int:
        """Those of all steps whose views are made together."""
        experiment = replace(self.experiment, batch_size=batch)
        at_once = steps_at_once(experiment, self.image_shape, torch.device("cpu"))
        return at_once * bytes_of_views(experiment, self.image_shape, batch)


@dataclass(frozen=True)
class Trial:
    """Forward passes on few images, with a copy of the network, and without a change of torch's generators."""

    network: Ensemble
    experiment: Experiment
    image_shape: tuple[int, int, int]
    member_by_member: bool

    def need(self, batch: int, less_memory: bool, free: int) -> Need | None:
        """What steps need; None if the network cannot be tried.

        The first pass alone gives too much, because not everything grows with the batch. For most trainings that is
        enough to know that they fit.
        """
        if (few := self._kept(_FEW)) is None:
            return None
        updates = bytes_of_updates(self.network, self.experiment)
        need = Need(self.experiment, self.image_shape, updates, few, few.times(1 / _FEW))
        if need.bytes(batch, less_memory) <= free:
            return need
        more = self._kept(_FEW + 1)
        return None if more is None else replace(need, per_image=more.plus(few.times(-1)))

    def _kept(self, images: int) -> Kept | None:
        try:
            with torch.random.fork_rng([]), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return self._pass(copy.deepcopy(self.network).train(), images)
        except Exception:  # somebody's network may refuse anything here; whether it trains, training will tell
            return None

    def _pass(self, network: Ensemble, images: int) -> Kept:
        rows = images * self.experiment.policy.views_per_step
        members = 1 if self.member_by_member else self.experiment.members
        drops = self.experiment.policy.stochastic_depth is not None
        keep = torch.ones(network.num_blocks, members * rows) if drops else None
        views_MBCHW = torch.zeros(members, rows, *self.image_shape)
        if not self.member_by_member:
            return measure_kept(network, views_MBCHW, keep)
        with only_member(network, 0):
            return measure_kept(network, views_MBCHW, keep)


def _does_not_fit(trial: Trial, need: Need, batch: int, less_memory: bool, free: int, world: World) -> str:
    here = "" if world.local_size == 1 else f" for each of the {world.local_size} processes here"
    at_once = "close other programs"
    if not less_memory and (less := need.bytes(batch, less_memory=True)) <= free:
        at_once += (
            f", or set less_memory (--less-memory), which needs {gib(less)}, takes longer and changes nothing else"
        )
    ways = [*_settings_that_fit(trial, need, batch, less_memory, free, world)]
    saving = " even with less_memory" if less_memory else ""
    ways += [f"fewer num_members (now {need.experiment.members})", "a smaller network"]
    return (
        f"a step needs about {gib(need.bytes(batch, less_memory))} of memory{saving}, "
        f"and {gib(free)} are free{here}: it needs {gib(need.activations(batch, less_memory))} for activations, "
        f"{gib(need.views(batch))} for views, and {gib(need.updates)} for gradients and the optimiser; {at_once}, or "
        f"train a new run with {', '.join(ways[:-1])} or {ways[-1]}"
    )


def _settings_that_fit(
    trial: Trial, need: Need, batch: int, less_memory: bool, free: int, world: World
) -> Iterator[str]:
    """The largest batch, and the largest images, that alone would let a step fit."""
    fitting = bisect_right(range(1, batch), float(free), key=lambda size: need.bytes(size, less_memory))
    if fitting >= _LEAST_BATCH:
        size = fitting * world.size
        share = size / need.experiment.batch_size
        rate = need.experiment.learning_rate * (math.sqrt(share) if need.experiment.optimiser == "adamw" else share)
        yield f"batch_size={size} and learning_rate={rate:.2g}"
    if need.experiment.images and (side := _largest_side(trial, need, batch, less_memory, free)):
        yield f"images.size={side}"


def _largest_side(trial: Trial, need: Need, batch: int, less_memory: bool, free: int) -> int | None:
    """Guessed by the number of pixels, and then tried: some networks take images of one size only."""
    channels, height, _ = need.image_shape
    growing = need.bytes(batch, less_memory) - need.updates
    sides = [side for side in _SIZES if side < height and need.updates + growing * (side / height) ** 2 <= free]
    if not sides:
        return None
    smaller = replace(trial, image_shape=(channels, sides[-1], sides[-1])).need(batch, less_memory, free)
    return sides[-1] if smaller and smaller.bytes(batch, less_memory) <= free else None


@contextmanager
def enough_memory(experiment: Experiment, device: torch.device) -> Iterator[None]:
    """Inside, what torch or Python say when memory is used up becomes an error that says what to change."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        raise InputError(
            f"training needs more memory than {device} has left; close other programs and train again in the "
            "same folder, which continues from the last checkpoint; less_memory (--less-memory) saves memory, takes "
            f"longer and changes nothing else; or {_smaller(experiment)}"
        ) from error


def _smaller(experiment: Experiment) -> str:
    return (
        f"in a new run lower batch_size (now {experiment.batch_size:,}), num_members (now {experiment.members:,}), or "
        "the size of the network or of the images"
    )


def bytes_of_updates(network: nn.Module, experiment: Experiment) -> int:
    """What gradients take, and what the optimiser keeps: SGD its momentum, AdamW two means."""
    trained = sum(p.numel() * p.element_size() for p in network.parameters() if p.requires_grad)
    kept = 2 if experiment.optimiser == "adamw" else 1 if experiment.momentum else 0
    return trained * (1 + kept)


def bytes_of_weights(network: nn.Module) -> int:
    """What the network itself takes. It may be on the meta device."""
    return sum(tensor.numel() * tensor.element_size() for tensor in network.state_dict().values())


def gib(count: float) -> str:
    """Bytes in words."""
    return f"{count / 2**30:,.1f} GiB"
