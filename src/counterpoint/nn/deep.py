"""Deep ensembles: networks that share nothing, behind the same interface as every other ensemble.

They are what a BatchEnsemble is measured against (Lakshminarayanan et al. 2017). M members have M times the parameters
of one network.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError
from counterpoint.nn.batch_ensemble import rows_per_member
from counterpoint.nn.ensemble import Ensemble

Logits = Callable[[Any], Tensor]
"""What takes the logits out of a network's output."""


class IndependentMembers(nn.Module):
    """M networks over folded batches: the rows i·B … (i+1)·B − 1 go through network i and no other."""

    def __init__(self, members: Sequence[nn.Module], logits: Logits | None = None) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.logits = logits

    @property
    def num_blocks(self) -> int:
        """How many residual branches each member has; 0 where they do not all have the same number."""
        counts = {int(getattr(member, "num_blocks", 0)) for member in self.members}
        return counts.pop() if len(counts) == 1 else 0

    def forward(self, *inputs: Any, keep: Tensor | None = None, **inputs_by_name: Any) -> Tensor:
        """Logits (M·B, …, K). Every tensor is divided among the members by its rows, and `keep` by its last axis.

        What is no tensor goes to every member as it is.
        """
        outputs = []
        for i, member in enumerate(self.members):
            mine = [self._part(value, i) for value in inputs]
            mine_by_name = {name: self._part(value, i) for name, value in inputs_by_name.items()}
            if keep is not None:
                mine_by_name["keep"] = self._part(keep, i, axis=-1)
            outputs.append(_read_logits(member(*mine, **mine_by_name), self.logits))
        return torch.cat(outputs)

    def extract(self, index: int) -> nn.Module:
        """Member `index` itself, not a copy of it."""
        if not 0 <= index < len(self.members):
            raise InputError(f"member {index} does not exist; members are 0 to {len(self.members) - 1}")
        return self.members[index]

    def _part(self, value: Any, index: int, axis: int = 0) -> Any:
        if not isinstance(value, Tensor):
            return value
        size = rows_per_member(value.shape[axis], len(self.members))
        return value.narrow(axis, index * size, size)


def deep_ensemble(factory: Callable[[], nn.Module], num_members: int = 4, *, logits: Logits | None = None) -> Ensemble:
    """An ensemble of networks that share nothing: `factory` is called once for each member, and makes a new network.

    Each network must start from weights of its own, which PyTorch's modules do when they are made. `logits` takes the
    logits out of a network's output that is not a tensor. A loss that is the mean over all rows gives each member 1/M
    of the gradient that it would get alone; counterpoint's own training takes the sum over members.
    """
    if num_members < 1:
        raise InputError(f"num_members is {num_members}; it must be 1 or more")
    members = [factory() for _ in range(num_members)]
    for member in members:
        if not isinstance(member, nn.Module) or isinstance(member, Ensemble):
            raise InputError(f"factory gave {type(member).__name__}; it must give a plain network, an nn.Module")
    _check_independent(members)
    return Ensemble(IndependentMembers(members, logits), num_members).train(members[0].training)


def _check_independent(members: Sequence[nn.Module]) -> None:
    """Raise if two members are one network, or would be: they would agree for ever, and averaging gain nothing."""
    for i, j in combinations(range(len(members)), 2):
        first, second = members[i], members[j]
        if first is second:
            problem = "are the same network; factory must make a new network in each call"
        elif {id(tensor) for tensor in _tensors(first)} & {id(tensor) for tensor in _tensors(second)}:
            problem = "share parameters or buffers; factory must make every part of the network in each call"
        elif _have_equal_weights(first, second):
            problem = (
                "start from the same weights; factory must draw new ones in each call, so it must not set the same "
                "seed every time, nor load the same file"
            )
        else:
            continue
        raise InputError(f"members {i} and {j} {problem}")


def _tensors(network: nn.Module) -> Iterator[Tensor]:
    yield from network.parameters()
    yield from network.buffers()


def _have_equal_weights(first: nn.Module, second: nn.Module) -> bool:
    ours, theirs = dict(first.named_parameters()), dict(second.named_parameters())
    return ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in ours)


def _read_logits(output: Any, logits: Logits | None) -> Tensor:
    """A member's logits, so that those of all members can be joined."""
    found = output if logits is None else logits(output)
    if not isinstance(found, Tensor):
        raise InputError(
            f"the network's output is {type(found).__name__}, not a tensor; say where the logits are: "
            "logits=lambda output: output[0]"
        )
    return found
