"""Which parameters are r and s, which are BatchNorm's, and which are the rest, for weight decay (SPEC D3)."""

from typing import Any

from torch import nn

from counterpoint.nn.batch_ensemble import BatchEnsembleConv2d, BatchEnsembleLinear


def parameter_groups(model: nn.Module, weight_decay: float, *, decay_rs: bool = True) -> list[dict[str, Any]]:
    """Optimiser groups named "weights", "batchnorm" and "rs", each with its weight decay; empty groups are left out.

    Everything is decayed, as one optimiser over all parameters would; `decay_rs=False` leaves r and s out.
    """
    groups: dict[str, list[nn.Parameter]] = {"weights": [], "batchnorm": [], "rs": []}
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            groups[_kind(module, name)].append(parameter)
    return [
        {
            "name": kind,
            "params": list(dict.fromkeys(parameters)),  # a shared parameter counts once
            "weight_decay": 0.0 if kind == "rs" and not decay_rs else weight_decay,
        }
        for kind, parameters in groups.items()
        if parameters
    ]


def _kind(module: nn.Module, name: str) -> str:
    if isinstance(module, BatchEnsembleConv2d | BatchEnsembleLinear) and name in ("r", "s"):
        return "rs"
    return "batchnorm" if isinstance(module, nn.modules.batchnorm._BatchNorm) else "weights"
