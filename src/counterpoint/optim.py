"""The paper's optimiser: SGD with Nesterov momentum and a cosine schedule per step (SPEC)."""

import math

import torch

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, parameter_groups


def make_optimiser(model: Ensemble, experiment: Experiment) -> torch.optim.SGD:
    """One optimiser over all parameters; r and s can be spared the weight decay (SPEC D3)."""
    groups = parameter_groups(model, experiment.weight_decay, decay_rs=experiment.decay_rs)
    return torch.optim.SGD(
        groups, lr=experiment.learning_rate, momentum=experiment.momentum, nesterov=experiment.momentum > 0
    )


def learning_rate(experiment: Experiment, step: int, total_steps: int) -> float:
    """The cosine from `learning_rate` at step 0 to `final_learning_rate` at the last step (SPEC D13)."""
    progress = step / max(total_steps - 1, 1)
    high, low = experiment.learning_rate, experiment.final_learning_rate
    return low + (high - low) * (1 + math.cos(math.pi * progress)) / 2
