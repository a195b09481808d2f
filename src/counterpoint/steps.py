"""The steps of training: what each one sees, and the update it makes.

A step's images, views and learning rate are functions of (experiment, seed, step) alone.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment.adversarial import perturb
from counterpoint.augment.consistency import jensen_shannon
from counterpoint.augment.views import Views, sample_views
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet, held_out_split
from counterpoint.nn import Ensemble
from counterpoint.nn.norm import left_untouched
from counterpoint.optim import learning_rate, set_learning_rate
from counterpoint.seeding import Stream

Forward = Callable[[Tensor, Tensor | None], Tensor]
"""(views_MBCHW, keep) to logits_MBK."""


@dataclass(frozen=True)
class Part:
    """Some of a data set's training images, with their numbers in it, which key every draw."""

    images: ImageSet
    numbers_N: Tensor

    def __len__(self) -> int:
        return len(self.numbers_N)

    def to(self, device: torch.device) -> "Part":
        return Part(self.images.to(device), self.numbers_N.to(device))


def split_training_images(data: DataSet, experiment: Experiment) -> tuple[Part, Part]:
    """The part to train on and the part held out: nothing with train_on="all", otherwise a tenth (CIFAR: 5,000).

    Of a small set more than a tenth, up to 500 images but no more than a third: a temperature that is fitted to a few
    dozen images, or to none that the network gets wrong, is worth nothing.
    """
    count = len(data.train)
    few = min(max(count // 10, 500), count // 3)
    kept, held_out = held_out_split(count, few if experiment.train_on == "split" else 0)
    return Part(data.train.select(kept), kept), Part(data.train.select(held_out), held_out)


@dataclass(frozen=True)
class Step:
    """What one update sees: images by their numbers in the data set, their labels, and each member's views of them."""

    numbers_B: Tensor
    labels_B: Tensor
    views: Views


def steps_an_epoch(experiment: Experiment, images: int) -> int:
    """The last, smaller batch of an epoch is kept (SPEC D13)."""
    return math.ceil(images / experiment.batch_size)


def total_steps(experiment: Experiment, images: int) -> int:
    """The steps of a whole training on `images` images."""
    return experiment.steps or experiment.epochs * steps_an_epoch(experiment, images)


def epoch_steps(
    part: Part,
    experiment: Experiment,
    *,
    seed: int,
    epoch: int,
    first: int = 0,
    at_once: int = 1,
    num_blocks: int,
    dtype: torch.dtype = torch.float32,
) -> Iterator[Step]:
    """An epoch's steps from its `first` on. The views of `at_once` steps are made together, which changes nothing but
    the speed."""
    device, batch = part.numbers_N.device, experiment.batch_size
    order = Stream(seed, "order", epoch).permutation(len(part), device)
    for start in range(first * batch, len(part), at_once * batch):
        rows = order[start : start + at_once * batch]
        step_of_row = torch.arange(start, start + len(rows), device=device) // batch
        numbers, labels = part.numbers_N[rows], part.images.labels_N[rows]
        views = sample_views(
            part.images.images_NCHW[rows],
            experiment.policy,
            num_members=experiment.members,
            indices_B=numbers,
            steps_B=epoch * steps_an_epoch(experiment, len(part)) + step_of_row,
            seed=seed,
            epoch=epoch,
            num_blocks=num_blocks,
            dtype=dtype,
        )
        for own in (slice(i, i + batch) for i in range(0, len(rows), batch)):
            yield Step(numbers[own], labels[own], views.select(own))


@dataclass
class TrainState:
    """What changes from step to step. `sums` holds the epoch's loss and errors, summed over views, on the device."""

    model: Ensemble
    optimiser: torch.optim.SGD
    sums: Tensor
    step: int = 0

    def tensors(self) -> dict[str, Tensor]:
        """Everything that must be saved, by name."""
        tensors = {f"model.{name}": tensor for name, tensor in self.model.state_dict().items()}
        for name, parameter in self.model.named_parameters():
            if "momentum_buffer" in self.optimiser.state[parameter]:
                tensors[f"momentum.{name}"] = self.optimiser.state[parameter]["momentum_buffer"]
        return tensors | {"sums": self.sums}

    @torch.no_grad()
    def restore(self, tensors: Mapping[str, Tensor], step: int) -> None:
        """Take up what `tensors` gave at `step`."""
        model = {k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")}
        self.model.load_state_dict(model)
        for name, parameter in self.model.named_parameters():
            if (saved := tensors.get(f"momentum.{name}")) is not None:
                # Into the parameter's own memory format, which the fused update relies on.
                self.optimiser.state[parameter]["momentum_buffer"] = torch.empty_like(parameter).copy_(saved)
        self.sums.copy_(tensors["sums"])
        self.step = step


def update(state: TrainState, step: Step, experiment: Experiment, total: int, learn: Callable[[Step], None]) -> None:
    """One step of `total`: the schedule's learning rate, then `learn`, which is `learn_from` in one form or another."""
    set_learning_rate(state.optimiser, learning_rate(experiment, state.step, total))
    learn(step)
    state.step += 1


def learn_from(state: TrainState, step: Step, experiment: Experiment, forward: Forward) -> None:
    """Perturb the views if the policy says so, then the loss, then SGD.

    All of it happens on the device and nothing depends on the step's number, so that a GPU can record and replay it.
    """
    views_MBCHW = perturbed_views(state.model, step, experiment, forward)
    state.optimiser.zero_grad(set_to_none=True)
    if step.views.companions_2MBCHW is None:
        logits_MBK = forward(views_MBCHW, step.views.keep)
        loss = _loss(logits_MBK, step.labels_B)
    else:
        logits_MBK, loss = _consistency(views_MBCHW, step, experiment, forward)
    loss.backward()
    state.optimiser.step()
    wrong_MB = logits_MBK.detach().argmax(dim=-1) != step.labels_B
    state.sums += torch.stack([loss.detach() * wrong_MB.numel(), wrong_MB.sum(), torch.ones_like(wrong_MB).sum()])


def perturbed_views(model: Ensemble, step: Step, experiment: Experiment, forward: Forward) -> Tensor:
    """What the members see at last: the step's views, adversarially perturbed if the policy says so."""
    views = step.views
    if experiment.policy.adversarial is None or views.amount_MB is None:
        return views.views_MBCHW
    with left_untouched(model):
        return perturb(
            lambda views_MBCHW: _loss(forward(views_MBCHW, views.keep), step.labels_B),
            views.views_MBCHW,
            views.amount_MB,
            experiment.policy.adversarial,
        )


def _consistency(views_MBCHW: Tensor, step: Step, experiment: Experiment, forward: Forward) -> tuple[Tensor, Tensor]:
    """The clean views' logits, and AugMix's loss: their cross-entropy and the weighted divergence of the three views.

    One forward pass of all three, whose statistics BatchNorm shares; an image's views drop the same branches.
    """
    assert step.views.companions_2MBCHW is not None
    assert experiment.policy.augmix is not None
    clean_MBCHW, second_MBCHW = step.views.companions_2MBCHW
    keep = None if step.views.keep_LMB is None else step.views.keep_LMB.repeat(1, 1, 3).flatten(1)
    logits_MRK = forward(torch.cat([clean_MBCHW, views_MBCHW, second_MBCHW], dim=1), keep)
    logits_3MBK = torch.stack(logits_MRK.chunk(3, dim=1))
    divergence = jensen_shannon(logits_3MBK.flatten(1, 2))
    return logits_3MBK[0], _loss(logits_3MBK[0], step.labels_B) + experiment.policy.augmix.jsd * divergence


def _loss(logits_MBK: Tensor, labels_B: Tensor) -> Tensor:
    return cross_entropy(logits_MBK.flatten(0, 1), labels_B.repeat(logits_MBK.shape[0]))
