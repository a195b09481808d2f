"""Which parameters are r and s, which are the members' biases, BatchNorm's, and the rest (docs/paper.md, 3)."""

from typing import Any

from torch import nn

from counterpoint.errors import InputError, is_finite, shown
from counterpoint.nn.members import MemberLayer


def parameter_groups(
    model: nn.Module,
    weight_decay: float,
    *,
    decay_rs: bool = True,
    decay_linear_rs: bool | None = None,
    decay_batchnorm: bool = True,
) -> list[dict[str, Any]]:
    """Optimiser groups named "weights", "member_biases", "batchnorm", "rs" and "linear_rs", with their weight decay.

    Pass the list to a PyTorch optimiser. Weight decay applies to every parameter, except to r and s with decay_rs=False
    and to BatchNorm's parameters with decay_batchnorm=False. r and s of linear layers are the group "linear_rs";
    decay_linear_rs decides for them alone, and None treats them like the others. Empty groups are left out.

    >>> from counterpoint.nn import parameter_groups, resnet
    >>> groups = parameter_groups(resnet(num_classes=10, num_members=2, width=4), 5e-4, decay_rs=False)
    >>> {group["name"]: group["weight_decay"] for group in groups}
    {'weights': 0.0005, 'member_biases': 0.0005, 'batchnorm': 0.0005, 'rs': 0.0, 'linear_rs': 0.0}
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is {shown(model)}; it must be a torch.nn.Module, such as an ensemble")
    if not is_finite(weight_decay) or weight_decay < 0:
        raise InputError(f"weight_decay is {shown(repr(weight_decay))}; it must be a finite number of 0 or more")
    decayed = {
        "weights": True,
        "member_biases": True,
        "batchnorm": decay_batchnorm,
        "rs": decay_rs,
        "linear_rs": decay_rs if decay_linear_rs is None else decay_linear_rs,
    }
    groups: dict[str, list[nn.Parameter]] = {kind: [] for kind in decayed}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            groups[_kind(module, name)].append(parameter)
    return [
        {
            "name": kind,
            "params": list(dict.fromkeys(parameters)),  # a shared parameter counts once
            "weight_decay": weight_decay if decayed[kind] else 0.0,
        }
        for kind, parameters in groups.items()
        if parameters
    ]


def _kind(module: nn.Module, name: str) -> str:
    if isinstance(module, MemberLayer) and name in ("r", "s"):
        return "linear_rs" if isinstance(module, nn.Linear) else "rs"
    if isinstance(module, MemberLayer) and name in ("bias", "member_bias"):
        return "member_biases"
    return "batchnorm" if isinstance(module, nn.modules.batchnorm._BatchNorm) else "weights"
