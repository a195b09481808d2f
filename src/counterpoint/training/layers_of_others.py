"""What training does for a network that is not counterpoint's own: it says what became of it, and seeds its draws."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from counterpoint.config import Experiment
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble
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


def seed_layers(experiment: Experiment, seed: int, step: int) -> None:
    """Let what another's layers draw in a step, such as dropout's masks, depend on the seed and the step alone.

    They draw from torch's global generators. So a run that goes on from a checkpoint draws what it would have drawn.
    """
    if not is_own(experiment.model):
        torch.manual_seed(Stream(seed, "layers of others", step).generator().initial_seed())


@contextmanager
def draws_put_back(device: torch.device, experiment: Experiment) -> Iterator[None]:
    """Afterwards torch's global generators are as they were before `seed_layers`."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices, enabled=not is_own(experiment.model)):
        yield
