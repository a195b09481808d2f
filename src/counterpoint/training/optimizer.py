"""The paper's optimiser: SGD with Nesterov momentum and a cosine schedule per step (SPEC)."""

import math

import torch

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, parameter_groups

_OF_THE_MEMBERS = ("rs", "member_biases")


def make_optimiser(model: Ensemble, experiment: Experiment) -> torch.optim.SGD:
    """One optimiser over all parameters. r and s, or BatchNorm's, can be spared the weight decay (SPEC D3), and what
    each member has of its own can have another learning rate."""
    groups = parameter_groups(
        model,
        experiment.weight_decay,
        decay_rs=experiment.decay_rs,
        decay_batchnorm=experiment.decay_batchnorm,
    )
    device = next(model.parameters()).device
    on_gpu = device.type == "cuda"
    for group in groups:
        group["rate_scale"] = experiment.member_rate if group["name"] in _OF_THE_MEMBERS else 1.0
        rate = experiment.learning_rate * group["rate_scale"]
        # A recorded step reads the rate from the GPU's memory.
        group["lr"] = torch.tensor(rate, device=device) if on_gpu else rate
    return torch.optim.SGD(groups, momentum=experiment.momentum, nesterov=experiment.momentum > 0, fused=on_gpu)


def set_learning_rate(optimiser: torch.optim.SGD, rate: float) -> None:
    """Give every group `rate` times its own scale, in place where it lies on the GPU."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate * group["rate_scale"])
        else:
            group["lr"] = rate * group["rate_scale"]


def learning_rate(experiment: Experiment, step: int, total_steps: int) -> float:
    """The cosine from `learning_rate` at step 0 to `final_learning_rate` at the last step (SPEC D13), and less in a
    warm-up."""
    progress = step / max(total_steps - 1, 1)
    high, low = experiment.learning_rate, experiment.final_learning_rate
    cosine = low + (high - low) * (1 + math.cos(math.pi * progress)) / 2
    return cosine * min((step + 1) / (experiment.warmup_steps + 1), 1)
