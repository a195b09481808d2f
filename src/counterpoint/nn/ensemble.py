"""The member axis: inputs (M, B, …) outside, folded to (M·B, …) here and nowhere else."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, shown, whole_number
from counterpoint.nn.members import MemberLayer

if TYPE_CHECKING:
    from counterpoint.nn.conversion.report import Conversion

ReadLogits = Callable[[Any], Tensor]

_MODES_LOCK = Lock()
_MODES: dict[nn.Module, tuple[int, bool]] = {}
"""Of the modules that are evaluated just now: by how many threads, and whether they were in training mode before."""


class Ensemble(nn.Module):
    """M members behind one interface. A plain network is an ensemble of one member.

    Call it with views (M, B, …) to get logits (M, B, …, K). `predict(images)` returns the members' mean probabilities
    (B, K), and `predict_members(images)` those of each member (M, B, K).

    The network inside takes folded batches (M·B, …). It may take any tensors, in order or by name, also inside tuples,
    lists and dicts. Each has the network's batch on axis 0, or on `batch_axis` where it has that many axes. It may
    return its logits (B, …, K), an object with `.logits`, a mapping with "logits", or anything that the function
    `logits` finds them in.

    >>> import torch
    >>> from torch import nn
    >>> from counterpoint.nn import Ensemble
    >>> one = Ensemble(nn.Linear(4, 3))
    >>> one.predict(torch.zeros(2, 4)).shape
    torch.Size([2, 3])
    """

    def __init__(
        self,
        network: nn.Module,
        num_members: int = 1,
        *,
        batch_axis: int = 0,
        logits: ReadLogits | None = None,
        conversion: "Conversion | None" = None,
    ) -> None:
        super().__init__()
        if not isinstance(network, nn.Module):
            raise InputError(f"the network is {shown(network)}; it must be a torch.nn.Module, made already")
        num_members = whole_number("num_members", num_members, 1)
        _check_layers(network, num_members)
        check_logits(logits)
        self.network = network
        self.num_members = num_members
        self.batch_axis = whole_number("batch_axis", batch_axis)
        self.logits = logits
        self.conversion = conversion
        """What `batch_ensemble` converted and what it left out."""
        self.num_blocks = count_blocks(network)
        """How many residual branches stochastic depth can drop; 0 for a network that does not say."""

    def forward(self, *inputs: Any, keep: Tensor | None = None, **by_name: Any) -> Tensor:
        """Logits (M, B, …, K) of views (M, B, …): every tensor given has the members first, then the network's axes.

        `keep` (blocks, M·B) is what each residual branch is multiplied by: the mask of stochastic depth, drawn before
        the step. With None nothing is dropped. For a network with residual branches it may be the second argument.
        """
        if self.num_blocks and len(inputs) == 2 and keep is None:
            inputs, keep = inputs[:1], inputs[-1]
        if keep is not None and not self.num_blocks:
            raise InputError(
                f"{type(self.network).__name__} has no residual branches that counterpoint can drop; "
                "leave keep out, or use resnext29 or resnet"
            )
        rows = self.count_rows(inputs, by_name)
        inputs, by_name = map_tensors(inputs, self._fold), map_tensors(by_name, self._fold)
        if keep is not None:
            if keep.shape != (self.num_blocks, rows):
                raise InputError(
                    f"keep has shape {tuple(keep.shape)}; it must be ({self.num_blocks}, {rows}), a number for each "
                    "residual branch and each row (members × batch)"
                )
            by_name["keep"] = keep
        logits = read_logits(self.network(*inputs, **by_name), self.logits)
        if logits.dim() < 2 or logits.shape[0] != rows:
            raise InputError(
                f"{type(self.network).__name__} gave logits of shape {tuple(logits.shape)} for {rows} rows; "
                f"they must be ({rows}, …, K)"
            )
        return logits.unflatten(0, (self.num_members, -1))

    def predict_members(self, *inputs: Any, **by_name: Any) -> Tensor:
        """Each member's probabilities (M, B, …, K) in evaluation mode, for inputs (B, …) scaled as in training.

        Afterwards every module is in the mode that it was in. Several threads may predict at the same time.
        """
        with evaluating(self):
            logits_MBK = self(*map_tensors(inputs, self.for_all), **map_tensors(by_name, self.for_all))
            if logits_MBK.shape[-1] == 1:
                raise InputError(
                    f"{type(self.network).__name__} gave one logit per row, and the softmax of one logit is always 1; "
                    "give it a logit for each class, two for a yes or no, or call the ensemble itself and use sigmoid"
                )
            at_least_float32 = torch.promote_types(logits_MBK.dtype, torch.float32)
            return logits_MBK.to(at_least_float32).softmax(dim=-1)

    def predict(self, *inputs: Any, **by_name: Any) -> Tensor:
        """The ensemble's probabilities (B, …, K): the mean of its members' (docs/paper.md, 20)."""
        return self.predict_members(*inputs, **by_name).mean(dim=0)

    def for_all(self, tensor: Tensor) -> Tensor:
        """The same input for every member: (B, …) to (M, B, …). A number stays a number."""
        return tensor.expand(self.num_members, *tensor.shape) if tensor.dim() else tensor

    def _fold(self, views: Tensor) -> Tensor:
        if not views.dim():
            return views
        axis = axis_of_rows(views[0], self.batch_axis)
        return views.movedim(0, axis).flatten(axis, axis + 1)

    def count_rows(self, inputs: tuple[Any, ...], by_name: Mapping[str, Any]) -> int:
        """M·B, which must be the same for every input (M, B, …)."""
        rows = None
        for name, views in _named_tensors(inputs, by_name):
            if views.dim() < 2 or views.shape[0] != self.num_members:
                raise InputError(
                    f"{name} has shape {tuple(views.shape)}; it must be (M, B, …) with M = {self.num_members} members"
                )
            here = self.num_members * views.shape[1 + axis_of_rows(views[0], self.batch_axis)]
            if rows not in (None, here):
                raise InputError(f"{name} has {here} rows (members × batch), and the inputs before it have {rows}")
            rows = here
        if rows is None:
            given = [type(value).__name__ for value in (*inputs, *by_name.values())]
            raise InputError(
                f"an ensemble needs a tensor among its inputs, and was given {', '.join(given) or 'nothing'}; "
                "torch.from_numpy makes one of an array"
            )
        return rows


def _check_layers(network: nn.Module, num_members: int) -> None:
    """Raise for layers of another number of members: they would divide the rows among the wrong ones."""
    for name, module in network.named_modules():
        if isinstance(module, MemberLayer) and module.num_members != num_members:
            where = f"its layer {name!r}" if name else "it"
            raise InputError(
                f"the network is given {num_members} members, and {where} has {module.num_members}; "
                f"say num_members={module.num_members}"
            )


def check_logits(logits: ReadLogits | None) -> None:
    if logits is not None and not callable(logits):
        raise InputError(
            f"logits is {shown(repr(logits))}; it must be a function that finds the logits in what the model returns, "
            "such as lambda output: output[0]"
        )


@contextmanager
def evaluating(network: nn.Module) -> Iterator[None]:
    """Inside, the network is in evaluation mode and no gradients are kept; afterwards every module is as it was.

    Where several threads are inside at the same time, the last one to leave a module gives it its mode back.
    """
    modules = [*network.modules()]
    with _MODES_LOCK:
        for module in modules:
            threads, was_training = _MODES.get(module, (0, module.training))
            _MODES[module] = threads + 1, was_training
    try:
        network.eval()
        with torch.no_grad():
            yield
    finally:
        with _MODES_LOCK:
            for module in modules:
                threads, was_training = _MODES.pop(module)
                if threads > 1:
                    _MODES[module] = threads - 1, was_training
                else:
                    module.training = was_training


def count_blocks(network: nn.Module) -> int:
    """How many residual branches of a network the mask `keep` can drop. A stranger's network may have another
    meaning of `num_blocks`: then its forward takes no mask.
    """
    blocks = getattr(network, "num_blocks", 0)
    takes_mask = "keep" in inspect.signature(network.forward).parameters
    return blocks if isinstance(blocks, int) and takes_mask else 0


def axis_of_rows(tensor: Tensor, batch_axis: int) -> int:
    """The batch axis of one of a network's inputs; one with fewer axes has its rows first."""
    return batch_axis if tensor.dim() > batch_axis else 0


def read_logits(output: Any, logits: ReadLogits | None = None) -> Tensor:
    """The logits in what a network returned."""
    if logits is not None:
        output = logits(output)
    elif isinstance(output, Mapping):
        output = output.get("logits", output)
    elif not isinstance(output, Tensor):
        output = getattr(output, "logits", output)
    if isinstance(output, Tensor):
        return output
    has = f" with {', '.join(map(repr, output))}" if isinstance(output, Mapping) else ""
    where = "the function given as logits=" if logits is not None else "the model"
    raise InputError(
        f"{where} returned a {type(output).__name__}{has}; counterpoint takes a tensor, an object with .logits or a "
        'mapping with "logits". Otherwise say where the logits are: logits=lambda output: output[0]'
    )


def map_tensors(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """`value` with every tensor changed, inside tuples, lists and dicts too."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, tuple | list):
        changed = [map_tensors(item, change) for item in value]
        return type(value)(*changed) if hasattr(value, "_fields") else type(value)(changed)
    if type(value) is dict:
        return {key: map_tensors(item, change) for key, item in value.items()}
    if isinstance(value, dict):  # an OrderedDict or a library's own kind stays what it is
        same_kind = copy.copy(value)
        for key, item in value.items():
            same_kind[key] = map_tensors(item, change)
        return same_kind
    return value


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors that `map_tensors` would change, in its order."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def _named_tensors(inputs: tuple[Any, ...], by_name: Mapping[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """Every tensor that has axes, and how an error calls it."""
    ordered = {"the input" if len(inputs) == 1 else f"input {i + 1}": value for i, value in enumerate(inputs)}
    for name, value in (ordered | {f"the input {name!r}": value for name, value in by_name.items()}).items():
        yield from ((name, tensor) for tensor in tensors_in(value) if tensor.dim())
