"""Turn any model into a BatchEnsemble that keeps its weights, and take one member out again."""

import copy
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, unknown
from counterpoint.nn.batch_ensemble import BatchEnsembleConv2d, BatchEnsembleLinear, Init
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.norm import PerMemberBatchNorm2d

BatchNorm = Literal["shared", "per-member"]
Module = TypeVar("Module", bound=nn.Module)


def batch_ensemble(
    model: nn.Module,
    num_members: int = 4,
    init_std: float = 0.5,
    batchnorm: BatchNorm = "shared",
    example_input: Tensor | None = None,
    *,
    init: Init = "normal",
    generator: torch.Generator | None = None,
) -> Ensemble:
    """A BatchEnsemble of `model`: its Conv2d and Linear layers get r and s per member, at any depth of nesting.

    The model given is left as it is. With `example_input` (B, C, H, W), each member is compared with a plain network
    that has its weights, and a model that does not convert is refused. Such a model mixes the rows of a batch, or reads
    a layer's weight instead of calling the layer; without the check its members would silently be wrong.
    """
    if batchnorm not in ("shared", "per-member"):
        raise unknown("batchnorm", batchnorm, ("shared", "per-member"))

    def convert(module: nn.Module) -> nn.Module | None:
        # Only these very types are converted, since a subclass may use its weight differently.
        if type(module) is nn.Conv2d:
            return _convert_conv(module, num_members, init, init_std, generator)
        if type(module) is nn.Linear:
            return _convert_linear(module, num_members, init, init_std, generator)
        if type(module) is nn.BatchNorm2d and batchnorm == "per-member":
            return _like(PerMemberBatchNorm2d.from_shared(module, num_members), module)
        return None

    network = _replace(copy.deepcopy(model), convert)
    if not any(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in network.modules()):
        raise InputError(f"{type(model).__name__} has no Conv2d or Linear layer to convert")
    ensemble = Ensemble(network, num_members).train(model.training)
    if example_input is not None:
        _check_members_match(ensemble, example_input)
    return ensemble


def extract_member(ensemble: Ensemble, index: int) -> nn.Module:
    """A copy of member `index` as a plain network. In a BatchEnsemble its weights are W ∘ r_i s_iᵀ."""
    if isinstance(ensemble.network, IndependentMembers):
        return copy.deepcopy(ensemble.network.extract(index))

    def convert(module: nn.Module) -> nn.Module | None:
        if isinstance(module, BatchEnsembleConv2d):
            return _plain_conv(module, index)
        if isinstance(module, BatchEnsembleLinear):
            return _plain_linear(module, index)
        if isinstance(module, PerMemberBatchNorm2d):
            return _plain_norm(module, index)
        return None

    return _replace(copy.deepcopy(ensemble.network), convert)


def _replace(root: nn.Module, convert: Callable[[nn.Module], nn.Module | None]) -> nn.Module:
    """`root` with each module replaced by what `convert` returns for it, unless that is None.

    A module that is used in two places is converted once and stays one module.
    """
    replaced: dict[nn.Module, nn.Module | None] = {module: convert(module) for module in root.modules()}
    for parent in list(root.modules()):
        for name, child in list(parent._modules.items()):
            new = replaced.get(child) if child is not None else None
            if new is not None:
                setattr(parent, name, new)
    return replaced[root] or root


def _like(new: Module, old: nn.Module) -> Module:
    """`new` with the device and dtype of `old`."""
    for tensor in old.state_dict().values():
        if tensor.is_floating_point():
            return new.to(tensor)
    return new


def _conv_options(conv: nn.Conv2d) -> dict[str, Any]:
    names = ("in_channels", "out_channels", "kernel_size", "stride", "padding", "dilation", "groups", "padding_mode")
    return {name: getattr(conv, name) for name in names} | {"bias": conv.bias is not None}


def _convert_conv(
    conv: nn.Conv2d, num_members: int, init: Init, init_std: float, generator: torch.Generator | None
) -> BatchEnsembleConv2d:
    new = BatchEnsembleConv2d(
        **_conv_options(conv), num_members=num_members, init=init, init_std=init_std, generator=generator
    ).to(conv.weight)
    _keep_parameters(conv, new)
    return new


def _convert_linear(
    linear: nn.Linear, num_members: int, init: Init, init_std: float, generator: torch.Generator | None
) -> BatchEnsembleLinear:
    new = BatchEnsembleLinear(
        linear.in_features,
        linear.out_features,
        num_members=num_members,
        bias=linear.bias is not None,
        init=init,
        init_std=init_std,
        generator=generator,
    ).to(linear.weight)
    _keep_parameters(linear, new)
    return new


def _keep_parameters(old: nn.Conv2d | nn.Linear, new: BatchEnsembleConv2d | BatchEnsembleLinear) -> None:
    new.weight = old.weight
    if old.bias is not None:
        new.bias = nn.Parameter(old.bias.detach().expand(new.num_members, -1).clone())


def _plain_conv(layer: BatchEnsembleConv2d, index: int) -> nn.Conv2d:
    conv = nn.Conv2d(**_conv_options(layer)).to(layer.weight)
    _fill_from_member(conv, layer, index)
    return conv


def _plain_linear(layer: BatchEnsembleLinear, index: int) -> nn.Linear:
    linear = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None).to(layer.weight)
    _fill_from_member(linear, layer, index)
    return linear


@torch.no_grad()
def _fill_from_member(
    plain: nn.Conv2d | nn.Linear, layer: BatchEnsembleConv2d | BatchEnsembleLinear, index: int
) -> None:
    plain.weight.copy_(layer.member_weight(index))
    if plain.bias is not None and layer.bias is not None:
        plain.bias.copy_(layer.bias[index])


def _plain_norm(norm: PerMemberBatchNorm2d, index: int) -> nn.BatchNorm2d:
    features = norm.num_features // norm.num_members
    plain = _like(nn.BatchNorm2d(features, norm.eps, norm.momentum, norm.affine, norm.track_running_stats), norm)
    entries = slice(index * features, (index + 1) * features)
    plain.load_state_dict({k: v[entries] if v.dim() else v for k, v in norm.state_dict().items()})
    return plain


@torch.no_grad()
def _check_members_match(ensemble: Ensemble, images_BCHW: Tensor) -> None:
    was_training = ensemble.training
    ensemble.eval()
    logits_MBK = ensemble(images_BCHW.expand(ensemble.num_members, *images_BCHW.shape))
    for i, logits_BK in enumerate(logits_MBK):
        expected = extract_member(ensemble, i).eval()(images_BCHW)
        scale = expected.abs().max().clamp(min=1e-6)
        if not (logits_BK - expected).abs().max() <= 1e-3 * scale:
            raise InputError(
                f"{type(ensemble.network).__name__} does not convert: member {i} of the ensemble differs from a plain "
                "network with its weights. The model probably mixes the rows of a batch, or reads a layer's weight "
                "instead of calling the layer"
            )
    ensemble.train(was_training)
