"""The paper's optimiser: SGD with Nesterov momentum and a cosine schedule per step (SPEC)."""

import math

import torch

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, parameter_groups


def make_optimiser(model: Ensemble, experiment: Experiment) -> torch.optim.SGD:
    """One optimiser over all parameters; r and s, or BatchNorm's, can be spared the weight decay (SPEC D3)."""
    groups = parameter_groups(
        model,
        experiment.weight_decay,
        decay_rs=experiment.decay_rs,
        decay_batchnorm=experiment.decay_batchnorm,
    )
    device = next(model.parameters()).device
    on_gpu = device.type == "cuda"
    # A recorded step reads the rate from the GPU's memory.
    rate = torch.tensor(experiment.learning_rate, device=device) if on_gpu else experiment.learning_rate
    return torch.optim.SGD(
        groups, lr=rate, momentum=experiment.momentum, nesterov=experiment.momentum > 0, fused=on_gpu
    )


def set_learning_rate(optimiser: torch.optim.SGD, rate: float) -> None:
    """The rate of every group, in place where it lies on the GPU."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def learning_rate(experiment: Experiment, step: int, total_steps: int) -> float:
    """The cosine from `learning_rate` at step 0 to `final_learning_rate` at the last step (SPEC D13), and less in a
    warm-up."""
    progress = step / max(total_steps - 1, 1)
    high, low = experiment.learning_rate, experiment.final_learning_rate
    cosine = low + (high - low) * (1 + math.cos(math.pi * progress)) / 2
    return cosine * min((step + 1) / (experiment.warmup_steps + 1), 1)
