"""Deep ensembles: networks that share nothing, behind the same interface as every other ensemble.

They are what a BatchEnsemble is measured against (Lakshminarayanan et al. 2017). M members have M times the parameters
of one network.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import torch
from torch import Tensor, nn

from counterpoint.errors import InputError, whole_number
from counterpoint.nn.ensemble import Ensemble, ReadLogits, check_logits, count_blocks, map_tensors, read_logits
from counterpoint.nn.members import rows_per_member


class IndependentMembers(nn.Module):
    """M networks over folded batches: the rows i·B … (i+1)·B − 1 go through network i and no other."""

    def __init__(self, members: Sequence[nn.Module], logits: ReadLogits | None = None) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)
        self.logits = logits
        counts = {count_blocks(member) for member in members}
        self.num_blocks = counts.pop() if len(counts) == 1 else 0
        """How many residual branches each member has; 0 where they do not all have the same number."""

    def forward(self, *inputs: Any, keep: Tensor | None = None, **inputs_by_name: Any) -> Tensor:
        """Logits (M·B, …, K). Every tensor is divided among the members by its rows, and `keep` by its last axis.

        What is no tensor goes to every member as it is.
        """
        outputs = []
        for i, member in enumerate(self.members):
            mine, mine_by_name = map_tensors((inputs, inputs_by_name), partial(self._part, index=i))
            if keep is not None:
                mine_by_name["keep"] = self._part(keep, i, axis=-1)
            outputs.append(read_logits(member(*mine, **mine_by_name), self.logits))
        return torch.cat(outputs)

    def _part(self, tensor: Tensor, index: int, axis: int = 0) -> Tensor:
        if not tensor.dim():
            return tensor
        size = rows_per_member(tensor.shape[axis], len(self.members))
        return tensor.narrow(axis, index * size, size)


def deep_ensemble(
    factory: Callable[[], nn.Module], num_members: int = 4, *, logits: ReadLogits | None = None
) -> Ensemble:
    """Make an ensemble of networks that share nothing: `factory()` is called once per member.

    Each call must return a new network with its own initial weights, which PyTorch's modules do by default. The result
    is an `Ensemble`. `logits` is a function that takes the logits out of a network's output that is not a tensor.

    A loss that is the mean over all rows gives each member 1/M of the gradient that it would get alone; counterpoint's
    own training takes the sum over members.

    >>> import torch
    >>> from torch import nn
    >>> from counterpoint import deep_ensemble
    >>> ensemble = deep_ensemble(lambda: nn.Linear(4, 3), num_members=2)
    >>> ensemble.predict_members(torch.zeros(5, 4)).shape
    torch.Size([2, 5, 3])
    """
    num_members = whole_number("num_members", num_members, 1)
    if isinstance(factory, nn.Module) or not callable(factory):
        raise InputError(
            f"factory is a {type(factory).__name__}; it must be a function that makes a new network in each call, "
            "such as lambda: Net()"
        )
    check_logits(logits)
    members = [factory() for _ in range(num_members)]
    for member in members:
        if not isinstance(member, nn.Module) or isinstance(member, Ensemble):
            raise InputError(f"factory gave {type(member).__name__}; it must give a plain network, an nn.Module")
    _check_independent(members)
    network = IndependentMembers(members, logits)
    ensemble = Ensemble(network, num_members)
    for module in (ensemble, network, network.members):
        module.training = members[0].training  # what is inside a member keeps its own mode, such as frozen BatchNorm
    return ensemble


def _check_independent(members: Sequence[nn.Module]) -> None:
    """Raise if two members are the same network or start from the same weights: they would always agree, and averaging
    them would gain nothing.
    """
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
