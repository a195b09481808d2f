"""What training does for a network of another library: it reports the conversion, and seeds the network's random
layers.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

from counterpoint.config import Experiment
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble
from counterpoint.parallel.world import World
from counterpoint.seeding import Stream
from counterpoint.watching import Watcher


def introduce(model: Ensemble, experiment: Experiment, watcher: Watcher) -> None:
    """Tell what the conversion made of another's network, and warn if little is left of its pretrained weights."""
    if is_own(experiment.model) or experiment.num_members is None:
        return
    if model.conversion is not None:
        watcher.noted(f"{experiment.model}: {model.conversion}")
    if experiment.pretrained and experiment.has_factors and experiment.init_std == Experiment.init_std:
        watcher.warned(
            f"the pretrained weights are multiplied by r and s from N(1, {experiment.init_std}²), and little is left "
            "of them; --set init_std=none keeps the members near them"
        )


def warn_of_draws(model: Ensemble, experiment: Experiment, world: World, watcher: Watcher) -> None:
    """Say so if the number of processes changes the result, because layers such as dropout draw for each of them."""
    if has_draws(model) and not world.is_alone and not is_own(experiment.model):
        watcher.warned(
            f"{experiment.model} has layers that draw random numbers in training (dropout), and each process draws its "
            f"own; another number of processes than {world.size} gives other numbers"
        )


def has_draws(model: nn.Module) -> bool:
    """Whether layers such as dropout draw while the model trains."""
    return any(_draws(module) for module in model.modules())


def _draws(module: nn.Module) -> bool:
    """Whether it is dropout or something alike, by the names that libraries use."""
    rates = (getattr(module, name, None) for name in ("p", "drop_prob"))
    is_named_so = any(part in type(module).__name__.lower() for part in ("drop", "stochastic"))
    return is_named_so and any(isinstance(rate, float) and rate > 0 for rate in rates)


def seed_layers(experiment: Experiment, seed: int, step: int, rank: int = 0) -> None:
    """Make the random draws of another library's layers, such as dropout's masks, depend only on seed, step and
    process.

    They draw from torch's global generators. So a run that goes on from a checkpoint draws what it would have drawn.
    """
    if not is_own(experiment.model):
        torch.manual_seed(Stream(seed, "layers of others", step, rank).generator().initial_seed())


@contextmanager
def draws_put_back(device: torch.device, experiment: Experiment) -> Iterator[None]:
    """Afterwards torch's global generators are as they were before `seed_layers`."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices, enabled=not is_own(experiment.model)):
        yield
