"""What must hold of a converted model: five checks, each of which says None or what it found instead.

They see a conversion only as logits (M, B, …, K) and factors whose first axis is the member, so that another library's
conversion can be checked in the same way.
"""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from conversion.case import Inputs, call

MEMBERS = 3
SAME = 1e-4
"""Two logits are the same up to this share of the largest: float32, and a folded batch takes other paths of BLAS."""
UNMOVED = 1e-6
"""The same for one network and one batch of inputs, where only rounding within the other members' rows could differ."""
LEARNING_RATE = 1e-4
DRAWS = 4


@dataclass(frozen=True)
class Converted:
    """A converted model as the checks see it."""

    module: nn.Module
    logits: Callable[[Inputs], Tensor]  # (B, …) inputs, the same for each member, to (M, B, …, K)
    factors: dict[str, nn.Parameter]  # every r and s, member first


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Dropout of other libraries' models draws from the global generator, so that is the one to seed and restore."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@torch.no_grad()
def settle(model: nn.Module, inputs: Inputs) -> nn.Module:
    """A new model in a state that a trained one could have, in evaluation mode.

    Libraries begin residual branches, layer scales and heads at zero or nearly so. Nothing gets through these, and no
    check could see what is behind them. So every parameter gets noise of standard deviation 0.02. Batch normalisation
    gets the statistics of 32 noisy rows: those of two rows have variances near zero, and dividing by them loses most
    digits.
    """
    with seeded(2):
        for parameter in model.parameters():
            parameter.add_(0.02 * torch.randn_like(parameter))
        norms = [module for module in model.modules() if isinstance(module, _BatchNorm)]
        momenta = [norm.momentum for norm in norms]
        for norm in norms:
            norm.momentum = 1.0
        if norms:
            call(model.train(), _noisy_rows(inputs))
        for norm, momentum in zip(norms, momenta, strict=True):
            norm.momentum = momentum
    return model.eval()


def _noisy_rows(inputs: Inputs) -> Inputs:
    """16 copies of each row, with noise as large as the examples' own."""

    def noisy(tensor: Tensor) -> Tensor:
        many = tensor.repeat(16, *[1] * (tensor.dim() - 1))
        return many + torch.randn_like(many) if many.is_floating_point() else many

    if isinstance(inputs, dict):
        return {name: noisy(tensor) for name, tensor in inputs.items()}
    return tuple(noisy(tensor) for tensor in inputs)


@torch.no_grad()
def independent(converted: Converted, inputs: Inputs) -> str | None:
    """Other factors for one member change its logits and no other member's, in evaluation mode."""
    converted.module.eval()
    before = converted.logits(inputs)
    for member in range(MEMBERS):
        with _other_factors(converted, member):
            after = converted.logits(inputs)
        moved_M = (after - before).abs().flatten(1).amax(1) / before.abs().max()
        for other, moved in enumerate(moved_M.tolist()):
            if other == member and not moved > SAME:
                return f"member {member}'s own factors change its logits by {moved:.1e} of the largest only"
            if other != member and not moved <= UNMOVED:
                return f"member {member}'s factors change the logits of member {other} by {moved:.1e} of the largest"
    return None


@contextmanager
def _other_factors(converted: Converted, member: int) -> Iterator[None]:
    kept = {name: factor[member].clone() for name, factor in converted.factors.items()}
    with seeded(3):
        for factor in converted.factors.values():
            factor[member] += 0.1 * torch.randn_like(factor[member])
    yield
    for name, factor in converted.factors.items():
        factor[member] = kept[name]


@torch.no_grad()
def kept(converted: Converted, inputs: Inputs, expected: Tensor) -> str | None:
    """With r = s = 1 every member gives the plain model's logits, in evaluation mode."""
    converted.module.eval()
    off = float((converted.logits(inputs) - expected).abs().max() / expected.abs().max())
    return None if off <= SAME else f"the logits differ by {off:.1e} of the largest"


def gradients(converted: Converted, inputs: Inputs) -> str | None:
    """A random weighted sum of the logits has a gradient at each member's part of every r and s, in training mode."""
    converted.module.train()
    reached = _reached(converted, inputs)
    missed = [name for name in converted.factors if not reached[name].all()]
    if not missed:
        return None
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in missed))
    weights = [name for name in reached if name not in converted.factors and name.startswith(tuple(layers))]
    if not any(reached[name].any() for name in weights):
        return f"no logit depends on {len(layers)} of the layers, converted or not: {_some(layers)}"
    return f"none at {len(missed)} of {len(converted.factors)} factors: {_some(missed)}"


def _reached(converted: Converted, inputs: Inputs) -> dict[str, Tensor]:
    """Where each parameter's gradient is finite and not zero, for each entry of its first axis.

    Stochastic depth may drop a layer for all rows of a member, so up to four draws count together.
    """
    parameters = {name: p for name, p in converted.module.named_parameters() if p.dim() and p.requires_grad}
    reached = {name: torch.zeros(len(parameter), dtype=torch.bool) for name, parameter in parameters.items()}
    for draw in range(DRAWS):
        with seeded(draw):
            logits = converted.logits(inputs)
            loss = (logits * torch.randn_like(logits)).sum()
        found = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        for name, gradient in zip(parameters, found, strict=True):
            if gradient is not None:
                entries = gradient.reshape(len(gradient), -1)
                reached[name] |= entries.ne(0).any(1) & entries.isfinite().all(1)
        if all(reached[name].all() for name in converted.factors):
            break
    return reached


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (", …" if len(names) > 3 else "")


@torch.no_grad()
def round_trip(converted: Converted, fresh: Converted, inputs: Inputs) -> str | None:
    """A fresh conversion that loads the saved state_dict gives equal logits, in evaluation mode."""
    file = io.BytesIO()
    torch.save(converted.module.state_dict(), file)
    file.seek(0)
    fresh.module.load_state_dict(torch.load(file, weights_only=True))
    converted.module.eval(), fresh.module.eval()
    off = float((fresh.logits(inputs) - converted.logits(inputs)).abs().max())
    return None if off == 0 else f"the logits differ by {off:.1e} after loading"


def step(converted: Converted, inputs: Inputs) -> str | None:
    """One step of SGD lowers the cross entropy with random labels on the same batch, with the same dropout."""
    converted.module.train()
    optimiser = torch.optim.SGD(converted.module.parameters(), lr=LEARNING_RATE)
    loss = _loss(converted, inputs)
    loss.backward()
    optimiser.step()
    before, after = loss.item(), _loss(converted, inputs).item()
    return None if after < before else f"the loss goes from {before:.6f} to {after:.6f}"


def _loss(converted: Converted, inputs: Inputs) -> Tensor:
    with seeded(4):
        logits_NK = converted.logits(inputs).flatten(0, -2)
    labels_N = torch.arange(len(logits_NK)) % logits_NK.shape[1]
    return nn.functional.cross_entropy(logits_NK, labels_N)
