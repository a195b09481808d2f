"""A training step: the state that it changes, the loss, and the update.

What a step does depends only on the state, its batch, and (experiment, seed, step).
"""

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint.augment.adversarial import perturb
from counterpoint.augment.augmix import jensen_shannon
from counterpoint.config import Experiment
from counterpoint.model_names import is_own
from counterpoint.nn import Ensemble
from counterpoint.nn.norm import left_untouched
from counterpoint.nn.one_member import only_member
from counterpoint.parallel.group import add_up
from counterpoint.parallel.world import ALONE, World
from counterpoint.seeding import Stream
from counterpoint.training.batches import Batch
from counterpoint.training.optimiser import kept_per_parameter, make_optimiser

Forward = Callable[[Tensor, Tensor | None], Tensor]
"""(views_MBCHW, keep) to logits_MBK."""


@dataclass
class TrainState:
    """What changes from step to step.

    `sums` holds the epoch's loss and wrong predictions, summed over views, and the number of views, on the device.
    """

    model: Ensemble
    optimiser: torch.optim.Optimizer
    sums: Tensor
    step: int = 0

    @classmethod
    def before_first_step(cls, model: Ensemble, experiment: Experiment) -> "TrainState":
        """The state of a training of `model` that has not begun."""
        device = next(model.parameters()).device
        return cls(model, make_optimiser(model, experiment), torch.zeros(3, dtype=torch.float64, device=device))

    def means(self) -> tuple[float, float]:
        """The mean loss and error of this epoch so far; NaN before its first step."""
        loss, wrong, rows = self.sums.tolist()
        return (loss / rows, wrong / rows) if rows else (math.nan, math.nan)

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved, by name."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            state = self.optimiser.state[parameter]
            tensors |= {f"{ours}.{name}": state[key] for key, ours in self._kept.items() if key in state}
        return tensors | {"sums": self.sums}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Go back to what `tensors()` gave at `step`. RuntimeError, as torch raises it, if it does not fit."""
        model = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        self.model.load_state_dict(model)
        self._check(tensors)
        for name, parameter in self.model.named_parameters():
            for key, ours in self._kept.items():
                if (saved := tensors.get(f"{ours}.{name}")) is not None:
                    # The fused update needs it in the memory format of its parameter. AdamW's count of steps has none.
                    kept = torch.empty_like(saved if key == "step" else parameter, device=parameter.device)
                    self.optimiser.state[parameter][key] = kept.copy_(saved)
        self.sums.copy_(tensors["sums"])
        self.step = step

    @property
    def _kept(self) -> dict[str, str]:
        return kept_per_parameter(self.optimiser)

    def _check(self, tensors: Mapping[str, Tensor]) -> None:
        """Raise for what `copy_` would stretch to fit, or would not find, and for a half of what is kept."""
        wanted = {"sums": self.sums.shape}
        if "sums" not in tensors:
            raise RuntimeError("sums is missing")
        for name, parameter in self.model.named_parameters():
            shapes = {f"{o}.{name}": torch.Size() if k == "step" else parameter.shape for k, o in self._kept.items()}
            missing = shapes.keys() - tensors.keys()
            if 0 < len(missing) < len(shapes):
                raise RuntimeError(f"{min(missing)} is missing")
            wanted |= shapes
        for name, tensor in tensors.items():
            if not name.startswith("model.") and tensor.shape != wanted.get(name):
                raise RuntimeError(f"{name} is {list(tensor.shape)}, and must be {list(wanted.get(name, []))}")


def take_step(
    state: TrainState,
    batch: Batch,
    experiment: Experiment,
    forward: Forward,
    world: World = ALONE,
    member_by_member: bool = False,
) -> None:
    """Perturb the views if the policy says so, compute the loss, and update the weights.

    The loss is the mean over all members' views. A deep ensemble is updated by the sum of its members' mean losses, so
    that each member learns exactly as it would alone. Several processes add up their gradients, and their shares of
    the loss. With `member_by_member` members' gradients are added up too, so that one member's activations are held at
    a time.

    All of it happens on the device, and nothing depends on the step's number. So a GPU can record and replay it.
    """
    state.optimiser.zero_grad(set_to_none=True)
    if member_by_member:
        sums = torch.zeros_like(state.sums)
        for index in range(experiment.members):
            with only_member(state.model, index):
                sums += _add_gradients(state.model, batch.of_member(index), experiment, forward)
    else:
        sums = _add_gradients(state.model, batch, experiment, forward)
    gradients = [parameter.grad for parameter in state.model.parameters() if parameter.grad is not None]
    add_up(world, [*gradients, sums])
    state.optimiser.step()
    state.sums += sums


def _add_gradients(model: Ensemble, batch: Batch, experiment: Experiment, forward: Forward) -> Tensor:
    """Forward and backward. The loss and the wrong predictions, summed over views, and how many views there are."""
    views_MBCHW = perturbed_views(model, batch, experiment, forward)
    if batch.views.companions_2MBCHW is None:
        logits_MBK = forward(views_MBCHW, batch.views.keep)
        loss = _loss(logits_MBK, batch.labels_B)
    else:
        logits_MBK, loss = _consistency(views_MBCHW, batch, experiment, forward)
    # The mean over members would let each member of a deep ensemble learn at 1/M of its rate, and decay at the whole.
    objective = experiment.members * loss if experiment.ensemble == "deep" else loss
    _shared(objective, batch).backward()
    wrong_MB = logits_MBK.detach().argmax(dim=-1) != batch.labels_B
    rows = wrong_MB.numel()
    return torch.stack([loss.detach() * rows, wrong_MB.sum(), torch.full_like(loss, rows)])


def perturbed_views(model: Ensemble, batch: Batch, experiment: Experiment, forward: Forward) -> Tensor:
    """What the members see in the end: the batch's views, adversarially perturbed if the policy says so."""
    views = batch.views
    if experiment.policy.adversarial is None or views.amount_MB is None:
        return views.views_MBCHW
    with left_untouched(model):
        return perturb(
            lambda views_MBCHW: _shared(_loss(forward(views_MBCHW, views.keep), batch.labels_B), batch),
            views.views_MBCHW,
            views.amount_MB,
            experiment.policy.adversarial,
            views.normalisation,
        )


def _shared(loss: Tensor, batch: Batch) -> Tensor:
    """This batch's part of the mean over the whole step. BatchNorm lets a loss depend on the others' images too."""
    return loss if batch.share == 1 else batch.share * loss


def _consistency(views_MBCHW: Tensor, batch: Batch, experiment: Experiment, forward: Forward) -> tuple[Tensor, Tensor]:
    """The logits of the clean views, and AugMix's loss: their cross-entropy plus a weighted divergence.

    The divergence is that between three views of an image, the clean one and two AugMix views. They go through the
    network in one pass, so BatchNorm's statistics are those of all three. They drop the same residual branches.
    """
    assert batch.views.companions_2MBCHW is not None
    assert experiment.policy.augmix is not None
    clean_MBCHW, second_MBCHW = batch.views.companions_2MBCHW
    keep = None if batch.views.keep_LMB is None else batch.views.keep_LMB.repeat(1, 1, 3).flatten(1)
    logits_MRK = forward(torch.cat([clean_MBCHW, views_MBCHW, second_MBCHW], dim=1), keep)
    logits_3MBK = torch.stack(logits_MRK.chunk(3, dim=1))
    divergence = jensen_shannon(logits_3MBK.flatten(1, 2))
    return logits_3MBK[0], _loss(logits_3MBK[0], batch.labels_B) + experiment.policy.augmix.jsd * divergence


def _loss(logits_MBK: Tensor, labels_B: Tensor) -> Tensor:
    return cross_entropy(logits_MBK.flatten(0, 1), labels_B.repeat(logits_MBK.shape[0]))


def has_draws(model: nn.Module) -> bool:
    """Whether layers such as dropout draw while the model trains."""
    return any(_draws(module) for module in model.modules())


def _draws(module: nn.Module) -> bool:
    """Whether it is dropout or something alike, by the names that libraries use."""
    rates = (getattr(module, name, None) for name in ("p", "drop_prob"))
    is_named_so = any(part in type(module).__name__.lower() for part in ("drop", "stochastic"))
    return is_named_so and any(isinstance(rate, float) and rate > 0 for rate in rates)


def seed_layers(experiment: Experiment, seed: int, step: int, rank: int = 0) -> None:
    """Make the random draws of another library's layers, such as dropout's masks, depend only on seed, step and
    process.

    They draw from torch's global generators. So a run that goes on from a checkpoint draws what it would have drawn.
    """
    if not is_own(experiment.model):
        torch.manual_seed(Stream(seed, "layers of others", step, rank).generator().initial_seed())


@contextmanager
def draws_put_back(device: torch.device, experiment: Experiment) -> Iterator[None]:
    """Afterwards torch's global generators are as they were before `seed_layers`."""
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices, enabled=not is_own(experiment.model)):
        yield
