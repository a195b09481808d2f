"""Turn any model into a BatchEnsemble that keeps its weights."""

import copy
import gc
import warnings
from collections.abc import Iterable
from contextlib import suppress
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parameter import is_lazy

from counterpoint.errors import InputError, one_of, shown, whole_number
from counterpoint.nn.batch_ensemble import give_members
from counterpoint.nn.conversion.check import Example, check_members
from counterpoint.nn.conversion.plan import Chosen, make_plan
from counterpoint.nn.conversion.report import Conversion, Layer
from counterpoint.nn.conversion.unpacked import UnpackedAttention, unpack
from counterpoint.nn.ensemble import Ensemble, ReadLogits
from counterpoint.nn.members import Init, MemberLayer
from counterpoint.nn.norm import give_each_member_a_norm

BatchNorm = Literal["shared", "per-member"]
DEFAULT_INIT_STD = 0.05
"""What init_std=None means: small, so that a trained model's members begin close to it (measured in docs/models.md)."""


def batch_ensemble(
    model: nn.Module,
    num_members: int = 4,
    init_std: float | None = None,
    batchnorm: BatchNorm = "shared",
    example_input: Any = None,
    *,
    init: Init = "normal",
    include: Chosen | None = None,
    exclude: Chosen = (),
    batch_axis: int = 0,
    logits: ReadLogits | None = None,
    generator: torch.Generator | None = None,
) -> Ensemble:
    """Make a BatchEnsemble of any model: its linear layers and convolutions get r and s for each member.

    The weights are shared. A layer's bias, if it has one, becomes one for each member. `model` itself is not changed.

    The result is an `Ensemble`. It takes views (M, B, …), and returns logits (M, B, …, K); `predict(images)` returns
    the members' mean probabilities (B, K). Its `conversion` says which layers were converted and which were left out.

    r and s start as N(1, init_std²). None means 0.05, so that the members of a trained model start near it. The paper's
    networks, which are trained from the start, use 0.5.

    `example_input` is an input of the model: a tensor, a tuple of arguments, or a dict of arguments by name. If you
    give it, the conversion is checked. Layers whose weights the model reads directly, without calling the layer, are
    then left out. A model whose members, or whose images, would not be independent is refused; the error names the
    module that mixes the rows of a batch. If you do not give it, such a model converts without a word.

    `include` and `exclude` choose layers by name ("head", "blocks.*.mlp") or by type. `batch_axis` is the axis of the
    rows in the model's inputs, if it is not the first. `logits` is a function that finds the logits in what the model
    returns.

    >>> import torch
    >>> from torch import nn
    >>> from counterpoint import batch_ensemble
    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    >>> images = torch.randn(5, 1, 8, 8)
    >>> ensemble = batch_ensemble(model, num_members=4, example_input=images)
    >>> ensemble.predict(images).shape  # averaged over the members
    torch.Size([5, 10])
    >>> ensemble.predict_members(images).shape
    torch.Size([4, 5, 10])
    """
    one_of("batchnorm", batchnorm, get_args(BatchNorm))
    if not isinstance(model, nn.Module):
        raise InputError(f"the model is {shown(model)}; it must be a torch.nn.Module, made already: Net(), and not Net")
    if isinstance(model, Ensemble):
        raise InputError("the model is an ensemble already; give the network that it was made of")
    num_members = whole_number("num_members", num_members, 1)
    std = DEFAULT_INIT_STD if init_std is None else init_std
    network = unpack(_copied(model))
    example = None if example_input is None else Example.of(example_input, batch_axis)
    plan = make_plan(network, include, exclude, example)
    if not plan.layers:
        reasons = "".join(f"; {one.name} ({one.kind}): {one.reason}" for one in plan.left_out[:3])
        raise InputError(f"{type(model).__name__} has no linear layer or convolution to convert{reasons}")
    before, kept = _count([network]), _count(plan.layers.values())
    converted = tuple(Layer(name, type(layer).__name__) for name, layer in plan.layers.items())
    for layer in plan.layers.values():
        give_members(layer, num_members, init, std, generator)
    _set_batch_axis(network, batch_axis)
    norms = {name: m for name, m in network.named_modules() if isinstance(m, _BatchNorm)}
    own = norms if batchnorm == "per-member" else {}
    for module in own.values():
        give_each_member_a_norm(module, num_members)
    conversion = Conversion(
        model=type(model).__name__,
        num_members=num_members,
        factors="r and s start as random signs" if init == "signs" else f"r and s start as N(1, {std:g}²)",
        converted=converted,
        left_out=tuple(plan.left_out),
        shared=tuple(layer for layer in plan.shared if layer.name not in own),
        parameters=before,
        parameters_converted=kept,
        parameters_added=_count([network]) - before,
        per_member=tuple(layer for layer in plan.shared if layer.name in own),
    )
    if conversion.warning:
        warnings.warn(f"{conversion.warning}; print(ensemble.conversion) says why", stacklevel=2)
    ensemble = Ensemble(network, num_members, batch_axis=batch_axis, logits=logits, conversion=conversion)
    ensemble.training = model.training
    if example is not None:
        check_members(ensemble, example)
    return ensemble


def _copied(model: nn.Module) -> nn.Module:
    """A copy that can be changed. What would go on using the model itself, or cannot be changed, is refused."""
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if is_lazy(tensor):
            raise InputError(f"{name} has no shape yet; run the model once on an input before it is converted")
    own = {id(part) for part in (*model.modules(), *model.parameters())}
    for name, module in model.named_modules():
        what = f"{name!r} ({type(module).__name__})" if name else f"the model ({type(module).__name__})"
        if isinstance(module, MemberLayer):
            raise InputError(f"{what} has members already; give a model without members, or use counterpoint.Ensemble")
        if isinstance(module, torch.jit.ScriptModule):
            raise InputError(f"{what} is TorchScript, whose layers cannot be changed; give the nn.Module before it")
        if isinstance(module, nn.DataParallel | nn.parallel.DistributedDataParallel):
            raise InputError(
                f"{what} divides a batch among devices without regard to members; give the model inside it, .module, "
                "and wrap the ensemble in DistributedDataParallel (DataParallel would divide its members)"
            )
        if hasattr(module, "_orig_mod"):  # torch.compile's own functions are made anew
            continue
        for attribute, value in vars(module).items():
            # Hooks of state_dict and torch.compile's own function have no part in what the model computes.
            is_harmless = attribute == "_compiled_call_impl" or "state_dict" in attribute
            if not is_harmless and _reaches(value, own):
                raise InputError(
                    f"{attribute!r} of {what} holds a function that uses this very model. A copy would go on using the "
                    "model's own weights; make the function a method of a subclass, or, if it is a hook, add it to the "
                    "ensemble's network instead"
                )
    try:
        return copy.deepcopy(model)
    except Exception as error:  # a module may hold anything
        raise InputError(
            f"{type(model).__name__} cannot be copied, so it is not converted: {error}. If it keeps a tensor that it "
            "computed, as torch.nn.utils.weight_norm and spectral_norm do, run it once under torch.no_grad() before"
        ) from error


def _reaches(value: Any, own: set[int]) -> bool:
    """Whether it is, or holds at any depth, a function that holds a part of the model at any depth.

    deepcopy copies what objects and methods hold, but not what functions hold: variables around them, and defaults of
    their arguments.
    """
    todo = [(value, False)]  # with whether a function holds it
    seen: set[tuple[int, bool]] = set()
    while todo:
        one, is_in_function = todo.pop()
        if id(one) in own and is_in_function:
            return True
        if id(one) in own or isinstance(one, Tensor | type | ModuleType) or (id(one), is_in_function) in seen:
            continue
        seen.add((id(one), is_in_function))
        if isinstance(one, FunctionType | BuiltinFunctionType):
            todo += [(held, True) for held in _held_by_function(one)]
        else:
            todo += [(held, is_in_function) for held in gc.get_referents(one)]
    return False


def _held_by_function(function: Any) -> list[Any]:
    if isinstance(function, BuiltinFunctionType):
        return [function.__self__]  # such as weight.matmul
    held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            held.append(cell.cell_contents)
    return held


def _set_batch_axis(network: nn.Module, batch_axis: int) -> None:
    """Linear layers see the model's own axes, except in torch's attention and transformer layers, which have theirs."""
    own_axis: dict[nn.Module, int] = {}
    for module in network.modules():
        if isinstance(module, UnpackedAttention):  # it calls its layers with the rows first
            own_axis |= dict.fromkeys(module.children(), 0)
        elif isinstance(module, nn.TransformerEncoderLayer | nn.TransformerDecoderLayer):
            own_axis |= dict.fromkeys((module.linear1, module.linear2), 0 if module.self_attn.batch_first else 1)
    for layer in network.modules():
        if isinstance(layer, MemberLayer) and isinstance(layer, nn.Linear):
            layer.batch_axis = own_axis.get(layer, batch_axis)


def _count(modules: Iterable[nn.Module]) -> int:
    """How many parameters the modules have; one that is shared counts once."""
    return sum(parameter.numel() for parameter in {p for module in modules for p in module.parameters()})
