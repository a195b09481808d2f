"""Whether a converted model's members are what they should be, found by running it, and which module is to blame."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.conversion.linearity import TOLERANCE, close
from counterpoint.nn.conversion.tracing import Moment, Pass, watched
from counterpoint.nn.ensemble import Ensemble, axis_of_rows, evaluating, map_tensors, read_logits, tensors_in
from counterpoint.nn.members import MemberLayer
from counterpoint.nn.one_member import extract_member

_SUM_TO_ONE = 1e-4  # the error of a softmax; half precision has a larger one
_SAME = 0.1  # of the tolerance, where the very same computation is done twice
_MUCH, _LITTLE = 0.3, 0.1
"""How far r and s are moved. If they were moved far, rounding alone would make two ways of computing a deep network
differ.
"""


@dataclass(frozen=True)
class Example:
    """Arguments for the plain model."""

    inputs: tuple[Any, ...]
    by_name: dict[str, Any]
    batch_axis: int

    @classmethod
    def of(cls, given: Any, batch_axis: int = 0) -> "Example":
        """A tensor, a tuple of arguments, or a dict of arguments by name."""
        given = dict(given) if isinstance(given, Mapping) else given  # such as what a tokenizer returns
        if not any(True for _ in tensors_in(given)):
            raise InputError(
                f"the example input is a {type(given).__name__}; it must be a tensor, or a tuple of arguments or a "
                "dict of arguments by name with a tensor in it (torch.from_numpy makes one of an array)"
            )
        for tensor in tensors_in(given):
            if tensor.dim() and not tensor.shape[axis_of_rows(tensor, batch_axis)]:
                raise InputError(
                    f"the example input has the shape {tuple(tensor.shape)}; it must have at least one row"
                )
        inputs = () if isinstance(given, dict) else given if isinstance(given, tuple) else (given,)
        return cls(inputs, given if isinstance(given, dict) else {}, batch_axis)

    def twice(self) -> "Example":
        """The same rows, and then the same again."""

        def double(tensor: Tensor) -> Tensor:
            return torch.cat([tensor, tensor], axis_of_rows(tensor, self.batch_axis)) if tensor.dim() else tensor

        return Example(map_tensors(self.inputs, double), map_tensors(self.by_name, double), self.batch_axis)

    def run(self, network: nn.Module) -> Any:
        """What the plain model returns. It gets copies, because it may change its input in place."""
        inputs, by_name = (map_tensors(value, torch.clone) for value in (self.inputs, self.by_name))
        return network(*inputs, **by_name)

    def run_members(self, ensemble: Ensemble) -> Tensor:
        """The logits (M, B, …, K) when every member gets the example."""
        inputs, by_name = (map_tensors(value, ensemble.for_all) for value in (self.inputs, self.by_name))
        logits: Tensor = ensemble(*inputs, **by_name)
        return logits

    def run_rows(self, ensemble: Ensemble, given_MB: Tensor) -> Tensor:
        """The logits (M, B, …, K) when the rows `given_MB` get the example, and all others rows that are like it.

        Such a row is the row before it. Its real numbers are made smaller, each in its own way: so they stay in the
        range that the model takes.
        """
        generator = torch.Generator().manual_seed(2)

        def views(tensor: Tensor) -> Tensor:
            if not tensor.dim():
                return tensor
            axis = axis_of_rows(tensor, self.batch_axis)
            is_real = tensor.is_floating_point() or tensor.is_complex()
            given = ensemble.for_all(tensor + 1 if is_real and not tensor.any() else tensor)  # smaller zeros are zeros
            others = given.roll(1, axis + 1)
            if is_real:
                others = others * (0.5 + 0.4 * torch.rand(others.shape, generator=generator, device="cpu")).to(others)
            shape = [1] * given.dim()
            shape[0], shape[axis + 1] = given_MB.shape
            return torch.where(given_MB.view(shape).to(given.device), given, others)

        logits: Tensor = ensemble(*map_tensors(self.inputs, views), **map_tensors(self.by_name, views))
        return logits

    def rows(self, ensemble: Ensemble) -> int:
        """M·B"""
        inputs, by_name = (map_tensors(value, ensemble.for_all) for value in (self.inputs, self.by_name))
        return ensemble.count_rows(inputs, by_name)


def run_watched(
    network: nn.Module, run: Callable[[], Any], failed: str, layers: Sequence[nn.Module] = ()
) -> tuple[Any, Pass]:
    """What `run()` returns and how it went, or an error that names the module that raised one."""
    with evaluating(network), watched(network, layers=layers) as current:
        try:
            return run(), current
        except Exception as error:  # whatever a stranger's code raises
            where = _called(current.active[-1], network) if current.active else "it"
            raise InputError(f"{failed}: {where} raised {type(error).__name__}: {error}") from error


def check_members(ensemble: Ensemble, example: Example) -> None:
    """Refuse an ensemble whose rows or members are not independent, or whose members are not the plain networks that
    `extract_member` gives.
    """
    with _awake(ensemble.network):
        before_MBK = _run(ensemble, example)
        if before_MBK.isnan().any():
            raise InputError(
                f"{_model(ensemble)} gives logits on the example input that are no numbers (NaN), so its members "
                "cannot be compared; give an example that it can be run on"
            )
        if are_probabilities(before_MBK):
            raise InputError(
                f"{_model(ensemble)} gives probabilities: on the example input every row is 0 or more and sums to 1. "
                "An ensemble needs logits, and would apply softmax a second time. Leave out the softmax at the end of "
                "the model, or say logits=torch.log"
            )
        if not close(_run(ensemble, example), before_MBK, _SAME):
            raise InputError(
                f"{_model(ensemble)} is random in evaluation mode too: it gives other logits each time, so its members "
                "cannot be compared. Let it draw nothing then, as nn.Dropout does; or convert it unchecked, without "
                "the example input"
            )
        _check_rows(ensemble, example)
        for index in range(ensemble.num_members):
            with _perturbed(ensemble.network, index, _MUCH):
                after_MBK = _run(ensemble, example)
            _check_independent(ensemble, example, index, before_MBK, after_MBK)
            with _perturbed(ensemble.network, index, _LITTLE):
                _check_same_as_plain(ensemble, example, index, _run(ensemble, example)[index])


def are_probabilities(logits_MBK: Tensor) -> bool:
    """Whether each of several rows is a distribution. Logits are never so by chance."""
    rows = logits_MBK.flatten(0, -2).double()
    if len(rows) < 2 or rows.shape[1] < 2 or bool((rows < 0).any()):
        return False
    return bool((rows.sum(1) - 1).abs().max() < _SUM_TO_ONE)


def _run(ensemble: Ensemble, example: Example, given_MB: Tensor | None = None) -> Tensor:
    """The logits of the example or, if `given_MB` says which rows get it, of those rows and others like it."""
    failed = f"{_model(ensemble)} does not convert: it runs on the example input, but as an ensemble it does not"
    logits_MBK: Tensor = run_watched(ensemble.network, lambda: _logits(ensemble, example, given_MB), failed)[0]
    return logits_MBK


def _logits(ensemble: Ensemble, example: Example, given_MB: Tensor | None) -> Tensor:
    return example.run_members(ensemble) if given_MB is None else example.run_rows(ensemble, given_MB)


def _check_rows(ensemble: Ensemble, example: Example) -> None:
    """Change one row, and then all others: what the rest gives must stay.

    This also finds what mixes rows before the first converted layer, where r and s change nothing.
    """
    shape = (ensemble.num_members, example.rows(ensemble) // ensemble.num_members)
    none_MB = torch.zeros(shape, dtype=torch.bool, device="cpu")
    first_MB = none_MB.clone()
    first_MB[0, 0] = True
    before_MBK = _run(ensemble, example, none_MB)
    for changed_MB in (first_MB, ~first_MB):
        after_MBK = _run(ensemble, example, changed_MB)
        if not close(after_MBK[~changed_MB], before_MBK[~changed_MB], _SAME):
            before, after = (
                _moments(ensemble.network, partial(_logits, ensemble, example, given))
                for given in (none_MB, changed_MB)
            )
            raise InputError(
                f"{_model(ensemble)} does not convert: {_first_mixing(ensemble, before, after, ~changed_MB)} mixes the "
                "rows of a batch. A change of some rows of the input changes what is computed there for others. Change "
                "the model so that each row depends on itself alone"
            )


def _check_same_as_plain(ensemble: Ensemble, example: Example, index: int, logits_BK: Tensor) -> None:
    plain = extract_member(ensemble, index)
    with evaluating(plain):
        expected_BK = read_logits(example.run(plain), ensemble.logits)
    # A model may compute in half precision inside and give its logits in float32.
    coarsest = max(TOLERANCE.get(parameter.dtype, 0.0) for parameter in plain.parameters())
    if not close(logits_BK, expected_BK, max(1.0, coarsest / TOLERANCE[logits_BK.dtype])):
        culprit = _first_different(ensemble, example, index, plain)
        raise InputError(
            f"{_model(ensemble)} does not convert: {culprit} computes something else for member {index} than in a "
            "plain network with that member's weights. It probably reads a layer's weight instead of calling "
            "the layer; leave that layer out (exclude=…)"
        )


def _check_independent(ensemble: Ensemble, example: Example, index: int, before_MBK: Tensor, after_MBK: Tensor) -> None:
    others_MB = torch.ones(after_MBK.shape[:2], dtype=torch.bool, device="cpu")
    others_MB[index] = False
    if others_MB.any() and not close(after_MBK[others_MB], before_MBK[others_MB], _SAME):
        before = _moments(ensemble.network, lambda: _logits(ensemble, example, None))
        with _perturbed(ensemble.network, index, _MUCH):
            after = _moments(ensemble.network, lambda: _logits(ensemble, example, None))
        raise InputError(
            f"{_model(ensemble)} does not convert: {_first_mixing(ensemble, before, after, others_MB)} mixes the rows "
            f"of a batch. A change of member {index}'s r and s changes what other members compute there. Leave it out "
            "if it is a layer (exclude=…), or change it so that each row depends on itself alone"
        )
    if torch.equal(after_MBK[index], before_MBK[index]):
        raise InputError(
            f"{_model(ensemble)} does not convert: member {index}'s logits do not depend on its r and s, since no "
            "converted layer leads to them"
        )


def _model(ensemble: Ensemble) -> str:
    return type(ensemble.network).__name__


@contextmanager
def _awake(network: nn.Module) -> Iterator[None]:
    """Inside, parameters that are zero get other values: a head or branch of zeros would hide every difference."""
    generator = torch.Generator().manual_seed(1)
    asleep = [p for p in network.parameters() if p.is_floating_point() and not p.any()]
    with torch.no_grad():
        for parameter in asleep:
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, device="cpu").to(parameter))
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter in asleep:
                parameter.zero_()


@contextmanager
def _perturbed(network: nn.Module, index: int, size: float) -> Iterator[None]:
    """Inside, member `index` has other factors r and s in every layer."""
    generator = torch.Generator().manual_seed(0)
    factors = [factor for layer in network.modules() if isinstance(layer, MemberLayer) for factor in (layer.r, layer.s)]
    before = [factor[index].clone() for factor in factors]
    with torch.no_grad():
        for factor in factors:
            change = size * torch.randn(factor.shape[1], generator=generator, device="cpu")
            factor[index] *= (1 + change).to(factor)
    try:
        yield
    finally:
        with torch.no_grad():
            for factor, values in zip(factors, before, strict=True):
                factor[index] = values


def _first_mixing(ensemble: Ensemble, before: list[Moment], after: list[Moment], same_MB: Tensor) -> str:
    """The module in which rows first change that should be the same before and after."""
    for old, new in zip(before, after, strict=True):
        for was, now in zip(old.tensors, new.tensors, strict=True):
            axis = _row_axis(was, same_MB.numel())
            if axis is None:
                continue
            same_now, same = (_members(x, axis, same_MB.numel())[same_MB.flatten()] for x in (now, was))
            if not close(same_now, same, _SAME):
                return _blamed(new, ensemble.network)
    return "its own code, after the last module that it calls,"


def _first_different(ensemble: Ensemble, example: Example, index: int, plain: nn.Module) -> str:
    """The module in which member `index` first differs from the plain network `plain`."""
    in_ensemble = _moments(ensemble.network, lambda: example.run_members(ensemble))
    alone = _moments(plain, lambda: example.run(plain))
    rows = example.rows(ensemble)
    for both, single in zip(in_ensemble, alone, strict=False):
        for found, expected in zip(both.tensors, single.tensors, strict=False):
            axis = _row_axis(found, rows)
            if axis is not None and not close(
                _members(found, axis, ensemble.num_members)[index], expected.movedim(axis, 0)
            ):
                return _blamed(both, ensemble.network)
    return "its own code, after the last module that it calls,"


def _moments(network: nn.Module, run: Callable[[], Any]) -> list[Moment]:
    """Every moment of a pass. Tensors are copied, since later code may change them in place."""
    seen: list[Moment] = []

    def see(moment: Moment) -> None:
        seen.append(replace(moment, tensors=tuple(tensor.clone() for tensor in moment.tensors)))

    with evaluating(network), watched(network, see):
        run()
    return seen


def _row_axis(tensor: Tensor, rows: int) -> int | None:
    """The axis that holds the rows: one of exactly that size, or the first if it holds several entries per row."""
    exact = [axis for axis, size in enumerate(tensor.shape) if size == rows]
    if exact:
        return exact[0]
    return 0 if tensor.dim() and tensor.shape[0] % rows == 0 else None


def _members(tensor: Tensor, axis: int, num_members: int) -> Tensor:
    """(M, rows of a member, …)"""
    return tensor.movedim(axis, 0).unflatten(0, (num_members, -1))


def _blamed(moment: Moment, network: nn.Module) -> str:
    """A module that begins with wrong inputs got them from its caller's own code."""
    if moment.when == "ends" or moment.caller is None:
        return _called(moment.module, network)
    return f"the code of {_called(moment.caller, network)} before it calls {_called(moment.module, network)}"


def _called(module: nn.Module, network: nn.Module) -> str:
    name = next((name for name, each in network.named_modules() if each is module), "")
    kind = (module.plain if isinstance(module, MemberLayer) else type(module)).__name__
    return f"{name!r} ({kind})" if name else f"{kind} itself"
