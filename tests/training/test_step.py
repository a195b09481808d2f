"""The sampled order, the views and the update, and a golden trace of 20 steps in float64.

The trace is kept as text in golden_trace.txt; `python -m tests.training.test_step` writes it anew when numerics
mean to move.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment.standard import apply_crop, sample_crop, to_unit
from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data import LabelledImages, parts_of
from counterpoint.nn import Ensemble
from counterpoint.normalisation import NORMALISATION
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.training.batches import epoch_batches, steps_per_epoch
from counterpoint.training.engines import Engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.optimiser import make_optimiser
from counterpoint.training.step import TrainState, perturbed_views, take_step
from tests.small import TINY, coloured_data, noise_data

GOLDEN = Path(__file__).with_name("golden_trace.txt")
PLAIN = Experiment("plain", "digits", train_on="all", model="resnet", width=4, num_members=2, epochs=4, batch_size=5)
EVERYTHING = replace(
    PLAIN,
    name="everything",
    batchnorm="per-member",
    policy=MemberPolicy(
        augmix=AugMix((1.0, 4.0), mixing="beta"),
        adversarial=Adversarial((0.05, 0.1), "shuffled"),
        stochastic_depth=StochasticDepth((0.3,), "constant"),
    ),
)


def start(experiment: Experiment, dtype: torch.dtype = torch.float64) -> tuple[TrainState, LabelledImages]:
    part = parts_of(coloured_data(24), experiment).train
    model = build_model(experiment, 3, 3, seed=0).to(dtype).train()
    return TrainState.before_first_step(model, experiment), part


def run(experiment: Experiment, at_once: int) -> Iterator[tuple[Tensor, float]]:
    """The images' numbers and the loss of each of the 20 steps."""
    state, part = start(experiment)
    engine = Engine(state, experiment, state.model)
    total = experiment.epochs * steps_per_epoch(experiment, len(part))
    for epoch in range(experiment.epochs):
        for batch in epoch_batches(
            part, experiment, seed=3, epoch=epoch, at_once=at_once, num_blocks=3, dtype=torch.float64
        ):
            state.sums.zero_()
            update(engine, batch, total)
            yield batch.numbers_B, float(state.sums[0] / state.sums[2])


def trace(experiment: Experiment, at_once: int = 1) -> list[str]:
    """A line per step: the experiment, then what was sampled (numbers, flips, crops), then the loss."""
    lines = []
    for number, (numbers, loss) in enumerate(run(experiment, at_once)):
        plan = sample_crop(numbers, Stream(3, "crop", number // 5), flip=True, padding=4)
        flips = "".join("-x"[int(flip)] for flip in plan.flip_N)
        crops = " ".join(f"{n}@{top},{left}" for n, top, left in zip(numbers, plan.top_N, plan.left_N, strict=True))
        lines.append(f"{experiment.name} {number:2d} {flips} {crops} loss {loss:.12f}")
    return lines


@pytest.mark.parametrize("experiment", [PLAIN, EVERYTHING], ids=lambda e: e.name)
def test_golden_trace(experiment: Experiment) -> None:
    golden = [line for line in GOLDEN.read_text().splitlines() if line.startswith(experiment.name + " ")]
    ours = trace(experiment)
    assert len(golden) == len(ours) == 20
    for old, new in zip(golden, ours, strict=True):
        (old_sampled, old_loss), (new_sampled, new_loss) = old.split(" loss "), new.split(" loss ")
        assert new_sampled == old_sampled
        assert float(new_loss) == pytest.approx(float(old_loss), abs=1e-8)


@pytest.mark.parametrize("experiment", [PLAIN, EVERYTHING], ids=lambda e: e.name)
def test_making_views_of_several_steps_at_once_changes_nothing(experiment: Experiment) -> None:
    assert trace(experiment, at_once=3) == trace(experiment)


def test_an_epoch_sees_each_image_once_in_another_order() -> None:
    _, part = start(PLAIN)
    orders = []
    for epoch in (0, 1):
        batches = list(epoch_batches(part, PLAIN, seed=0, epoch=epoch, num_blocks=3))
        assert [len(batch.numbers_B) for batch in batches] == [5, 5, 5, 5, 4]
        orders.append(torch.cat([batch.numbers_B for batch in batches]).tolist())
        for batch in batches:
            assert torch.equal(batch.labels_B, batch.numbers_B % 3)
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(24))
    assert orders[0] != orders[1]


def test_an_epoch_can_start_at_any_step() -> None:
    _, part = start(EVERYTHING)
    whole = list(epoch_batches(part, EVERYTHING, seed=0, epoch=2, at_once=2, num_blocks=3))
    rest = list(epoch_batches(part, EVERYTHING, seed=0, epoch=2, first=3, at_once=2, num_blocks=3))
    assert len(rest) == 2
    for expected, batch in zip(whole[3:], rest, strict=True):
        assert torch.equal(batch.numbers_B, expected.numbers_B)
        assert torch.equal(batch.views.views_MBCHW, expected.views.views_MBCHW)
        assert batch.views.keep_LMB is not None
        assert expected.views.keep_LMB is not None
        assert torch.equal(batch.views.keep_LMB, expected.views.keep_LMB)


def test_views_without_other_augmentation_are_the_crops() -> None:
    _, part = start(PLAIN)
    batch = next(epoch_batches(part, PLAIN, seed=3, epoch=1, num_blocks=3))
    plan = sample_crop(batch.numbers_B, Stream(3, "crop", 1), flip=True, padding=4)
    expected = NORMALISATION.apply(to_unit(apply_crop(part.images_NCHW[batch.numbers_B], plan)))
    assert torch.equal(batch.views.views_MBCHW, torch.stack([expected, expected]))


def test_the_loss_is_the_mean_over_all_views() -> None:
    state, part = start(PLAIN)
    batch = next(epoch_batches(part, PLAIN, seed=0, epoch=0, num_blocks=3, dtype=torch.float64))
    logits_MBK = state.model(batch.views.views_MBCHW).detach()
    losses = [cross_entropy(logits_BK, batch.labels_B) for logits_BK in logits_MBK]
    wrong = (logits_MBK.argmax(-1) != batch.labels_B).sum()
    update(Engine(state, PLAIN, state.model), batch, total=20)
    assert state.sums.tolist() == pytest.approx([10 * float(sum(losses) / 2), int(wrong), 10])
    assert state.step == 1


def test_the_adversarial_pass_leaves_the_network_as_it_was() -> None:
    """Its BatchNorm statistics too, which an evaluation reads and a training step does not (docs/paper.md, 9)."""
    state, part = start(EVERYTHING)
    batch = next(epoch_batches(part, EVERYTHING, seed=0, epoch=0, num_blocks=3, dtype=torch.float64))
    before = {name: tensor.clone() for name, tensor in state.model.state_dict().items()}
    views_MBCHW = perturbed_views(state.model, batch, EVERYTHING, state.model)
    assert not torch.equal(views_MBCHW, batch.views.views_MBCHW)
    assert all(torch.equal(tensor, before[name]) for name, tensor in state.model.state_dict().items())


CONSISTENT = replace(TINY, batch_size=6, policy=MemberPolicy(augmix=AugMix((1.0, 4.0), jsd=12.0)))


def test_companions_of_several_steps_made_at_once_are_the_same() -> None:
    part = parts_of(noise_data(12, 3), CONSISTENT).train
    alone, together = (
        list(epoch_batches(part, CONSISTENT, seed=0, epoch=0, at_once=at_once, num_blocks=3)) for at_once in (1, 2)
    )
    for expected, batch in zip(alone, together, strict=True):
        assert batch.views.companions_2MBCHW is not None
        assert expected.views.companions_2MBCHW is not None
        assert torch.equal(batch.views.companions_2MBCHW, expected.views.companions_2MBCHW)


@pytest.mark.parametrize("depth", [None, StochasticDepth((0.2, 0.5))], ids=["plain", "stochastic depth"])
def test_a_step_with_the_consistency_loss_is_that_of_the_obvious_loop(depth: StochasticDepth | None) -> None:
    experiment = replace(CONSISTENT, policy=replace(CONSISTENT.policy, stochastic_depth=depth))
    part = parts_of(noise_data(6, 3), experiment).train
    step = next(epoch_batches(part, experiment, seed=0, epoch=0, num_blocks=3, dtype=torch.float64))
    ours, twin = (build_model(experiment, 3, 3, seed=0).double().train() for _ in range(2))
    state = TrainState.before_first_step(ours, experiment)
    take_step(state, step, experiment, ours)

    optimiser = make_optimiser(twin, experiment)
    loss, wrong = obvious_loss(twin, step.views, step.labels_B)
    loss.backward()
    optimiser.step()
    assert state.sums.tolist() == pytest.approx([12 * loss.item(), wrong, 12])
    for (name, ours_p), twin_p in zip(ours.named_parameters(), twin.parameters(), strict=True):
        assert torch.allclose(ours_p, twin_p, rtol=1e-9, atol=1e-12), name


def obvious_loss(model: Ensemble, views: Views, labels_B: Tensor) -> tuple[Tensor, int]:
    """CE(clean) + 12·JS(clean, first, second), member by member and image by image, from one forward pass of all."""
    assert views.companions_2MBCHW is not None
    clean, second = views.companions_2MBCHW
    three = [clean, views.views_MBCHW, second]
    keep = None if views.keep_LMB is None else torch.cat([views.keep_LMB] * 3, dim=2).flatten(1)
    probs_MRK = model(torch.cat(three, dim=1), keep).softmax(dim=-1)
    losses, wrong = [], 0
    for probs_RK in probs_MRK:
        for image, label in enumerate(labels_B):
            predictions = [probs_RK[image], probs_RK[6 + image], probs_RK[12 + image]]
            mixture = sum(predictions) / 3
            js = sum((p * (p / mixture).log()).sum() for p in predictions) / 3
            losses.append(-predictions[0][label].log() + 12 * js)
            wrong += int(predictions[0].argmax() != label)
    return torch.stack(losses).mean(), wrong


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(trace(PLAIN) + trace(EVERYTHING)) + "\n")
