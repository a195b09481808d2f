"""The optimiser: SGD with Nesterov momentum, as in the paper (docs/paper.md), or AdamW; a cosine schedule per step."""

import math

import torch
from torch.optim import SGD, AdamW, Optimizer

from counterpoint.config import Experiment
from counterpoint.nn import Ensemble, parameter_groups

_MEMBER_GROUPS = ("rs", "linear_rs", "member_biases")
_SQUARES_KEPT = 0.999  # AdamW's usual share of the mean squared gradient that is kept from step to step


def make_optimiser(model: Ensemble, experiment: Experiment) -> Optimizer:
    """One optimiser over all parameters.

    r and s can be spared the weight decay, and so can BatchNorm's parameters (docs/paper.md, 3). The parameters that
    belong to one member can have another learning rate (docs/paper.md, 19).
    """
    groups = parameter_groups(
        model,
        experiment.weight_decay,
        decay_rs=experiment.decay_rs,
        decay_linear_rs=experiment.decay_linear_rs,
        decay_batchnorm=experiment.decay_batchnorm,
    )
    device = next(model.parameters()).device
    on_gpu = device.type == "cuda"
    for group in groups:
        group["rate_scale"] = experiment.member_rate if group["name"] in _MEMBER_GROUPS else 1.0
        rate = experiment.learning_rate * group["rate_scale"]
        # A recorded step reads the rate from the GPU's memory.
        group["lr"] = torch.tensor(rate, device=device) if on_gpu else rate
    # On a CPU the fused updates take each tensor as contiguous memory, and change the wrong values where it is not.
    if experiment.optimiser == "adamw":
        # In Python the momentum may be the whole number 0, and torch takes only floats.
        betas = (float(experiment.momentum), _SQUARES_KEPT)
        return AdamW(groups, betas=betas, fused=on_gpu, capturable=on_gpu)
    return SGD(groups, momentum=experiment.momentum, nesterov=experiment.momentum > 0, fused=on_gpu)


def kept_per_parameter(optimiser: Optimizer) -> dict[str, str]:
    """What the optimiser keeps of each parameter: torch's name for it, and the one in a checkpoint."""
    if isinstance(optimiser, AdamW):
        return {"exp_avg": "mean", "exp_avg_sq": "mean_square", "step": "steps"}
    return {"momentum_buffer": "momentum"}


def set_learning_rate(optimiser: Optimizer, rate: float) -> None:
    """Set every group's learning rate to `rate` times the group's scale, in place where it lies on the GPU."""
    for group in optimiser.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate * group["rate_scale"])
        else:
            group["lr"] = rate * group["rate_scale"]


def learning_rate(experiment: Experiment, step: int, total_steps: int) -> float:
    """The learning rate of a step: a cosine times a linear warm-up (docs/paper.md, 11).

    The cosine goes from `learning_rate` at step 0 to `final_learning_rate` at the last step.
    """
    progress = step / max(total_steps - 1, 1)
    high, low = experiment.learning_rate, experiment.final_learning_rate
    cosine = low + (high - low) * (1 + math.cos(math.pi * progress)) / 2
    return cosine * min((step + 1) / (experiment.warmup_steps + 1), 1)
