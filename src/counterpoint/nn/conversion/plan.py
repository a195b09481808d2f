"""Which of a model's layers get members, and why the others do not."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from torch import nn
from torch.nn.modules.rnn import RNNBase, RNNCellBase

from counterpoint.errors import InputError, shown, unknown
from counterpoint.nn.batch_ensemble import FOLDABLE, is_foldable
from counterpoint.nn.conversion.check import Example, run_watched
from counterpoint.nn.conversion.linearity import why_not_linear
from counterpoint.nn.conversion.report import EXCLUDED, NOT_INCLUDED, PARAMETER, Layer, LeftOut
from counterpoint.nn.conversion.unpacked import UnpackedAttention

Chosen = str | type[nn.Module] | Collection[str | type[nn.Module]]
_CONVERTIBLE = tuple(FOLDABLE)
_LOOKED_UP = (nn.Embedding, nn.EmbeddingBag)


@dataclass
class Plan:
    """What is to be done with a network's layers."""

    layers: dict[str, nn.Module] = field(default_factory=dict)  # to be converted
    left_out: list[LeftOut] = field(default_factory=list)
    shared: list[Layer] = field(default_factory=list)


def make_plan(network: nn.Module, include: Chosen | None, exclude: Chosen, example: Example | None) -> Plan:
    """The plan for `network`. With an example, layers that are not called on it are found and left out."""
    included, excluded = None if include is None else _chosen(network, include), _chosen(network, exclude)
    usage = None if example is None else _find_usage(network, example)
    plan = Plan()
    for name, module in _outermost(network):
        reason = _why_not(module, included, excluded, usage)
        if reason is not None:
            plan.left_out.append(LeftOut(name, type(module).__name__, reason))
        elif isinstance(module, _CONVERTIBLE):
            plan.layers[name] = module
        else:
            plan.shared += _of_its_own(name, module)
    return plan


@dataclass(frozen=True)
class _Usage:
    """What a model does with its layers on an example."""

    called: Collection[nn.Module]
    read_by: Mapping[nn.Module, nn.Module]  # layers whose weights other modules read
    without_rows: Collection[nn.Module]  # layers that get something else than the rows of a batch


def _find_usage(network: nn.Module, example: Example) -> _Usage:
    """Run the model on the example, and on twice as many rows. A model that fails on the example is refused."""
    layers = [module for _, module in _outermost(network) if isinstance(module, _CONVERTIBLE)]
    failed = "the model fails on the example input"
    once = run_watched(network, lambda: example.run(network), failed, layers)[1]
    try:
        twice = run_watched(network, lambda: example.twice().run(network), failed)[1]
    except InputError:  # a model that takes only one batch size cannot be checked further
        return _Usage(once.called, once.read_by, ())
    same_shape = {
        layer
        for layer in layers
        if any(a == b for a, b in zip(once.called.get(layer, ()), twice.called.get(layer, ()), strict=False))
    }
    return _Usage(once.called, once.read_by, same_shape)


def _chosen(network: nn.Module, chosen: Chosen) -> set[nn.Module]:
    """The modules that are chosen by any of their names or by type, and all that is inside them. A choice that fits no
    module is probably a typing error, and is refused.
    """
    modules = dict(network.named_modules(remove_duplicate=False))
    found: set[nn.Module] = set()
    for one in [chosen] if isinstance(chosen, str | type) else chosen:
        if not isinstance(one, str | type):
            raise InputError(f"{shown(one)} is not a layer's name or type; give them as 'head' or nn.Linear")
        if isinstance(one, str):
            fitting = [module for name, module in modules.items() if fnmatchcase(name, one)]
            slip = unknown("layer", one, filter(None, modules))
        else:
            fitting = [module for module in modules.values() if isinstance(module, one)]
            slip = unknown("type of layer", one.__name__, sorted({type(m).__name__ for m in modules.values()}))
        if not fitting:
            raise slip
        found.update(part for module in fitting for part in module.modules())
    return found


def _why_not(
    module: nn.Module, included: set[nn.Module] | None, excluded: set[nn.Module], usage: _Usage | None
) -> str | None:
    """Why a layer with a weight gets no members. None for the others, and for modules without such a weight."""
    if not isinstance(module, _CONVERTIBLE):
        return _why_unknown(module)
    if module in excluded:
        return EXCLUDED
    if included is not None and module not in included:
        return NOT_INCLUDED
    if usage is not None and module not in usage.called:
        reader = usage.read_by.get(module)
        if reader is None:
            return "it is not called in evaluation mode"
        return f"it is not called: {type(reader).__name__} reads its weight directly"
    if usage is not None and module in usage.without_rows:
        return "its input is not a batch: twice as many images give it as many rows as before"
    if "forward" in vars(module):
        return "its forward was replaced on this very layer, so that r and s would not be used"
    if not isinstance(getattr(module, "bias", None), nn.Parameter | None):
        return "its bias is computed before each call, so that members cannot have their own"
    return None if is_foldable(module) else why_not_linear(module)


def _why_unknown(module: nn.Module) -> str | None:
    if isinstance(module, nn.MultiheadAttention) and not isinstance(module, UnpackedAttention):
        return "a subclass of MultiheadAttention may use its weights in another way"
    if isinstance(module, RNNBase | RNNCellBase):
        return "a recurrent layer reads its weights in one fused call"
    if isinstance(module, nn.Bilinear):
        return "it has two inputs, and s can multiply only one"
    own = dict(module.named_parameters(recurse=False))
    if not isinstance(module, _LOOKED_UP) and any("weight" in name and p.dim() > 1 for name, p in own.items()):
        return "counterpoint does not know how it uses its weight"
    return None


def _outermost(network: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every module and its name, once each. What is inside a layer, and its parametrisations, are left out."""
    seen: set[nn.Module] = set()

    def walk(name: str, module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
        if module in seen:
            return
        seen.add(module)
        yield name or type(module).__name__, module
        if not isinstance(module, _CONVERTIBLE) and _why_unknown(module) is None:
            for child_name, child in module.named_children():
                yield from walk(f"{name}.{child_name}".lstrip("."), child)

    yield from walk("", network)


def _of_its_own(name: str, module: nn.Module) -> list[Layer]:
    """What members share of a module without a weight layer's weight: the module, or its parameters if it has parts."""
    own = [parameter for parameter, _ in module.named_parameters(recurse=False)]
    if not own:
        return []
    if next(module.children(), None) is None:
        return [Layer(name, type(module).__name__)]
    return [Layer(f"{name}.{parameter}", PARAMETER) for parameter in own]
