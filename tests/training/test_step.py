"""The sampled order, the views and the update, and a golden trace of 20 steps in float64.

The trace is kept as text in golden_trace.txt. When numerics are meant to move, `python tests/training/test_step.py`
writes it anew.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment.standard import apply_crop, normalise, sample_crop, to_unit
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.data.split import Part, split_training_images
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.training.engines import Engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState, epoch_batches, perturbed_views, steps_per_epoch

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


def tiny_data(images: int = 24) -> DataSet:
    """Three classes of noisy stripes, from a counter-based stream, so the same everywhere."""
    numbers = torch.arange(images)
    labels = numbers % 3
    pixels = Stream(0, "tiny").integers(numbers, 3 * 8 * 8, 200).view(images, 3, 8, 8)
    pixels[torch.arange(images), labels] += 55
    images_u8 = ImageSet(pixels.to(torch.uint8), labels, ("red", "green", "blue"))
    return DataSet("tiny", images_u8, images_u8)


def start(experiment: Experiment, dtype: torch.dtype = torch.float64) -> tuple[TrainState, Part]:
    part, _ = split_training_images(tiny_data(), experiment)
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
    """One line per step: the experiment, then what was sampled (numbers, flips, crops), then the loss."""
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
    for one, other in zip(whole[3:], rest, strict=True):
        assert torch.equal(one.numbers_B, other.numbers_B)
        assert torch.equal(one.views.views_MBCHW, other.views.views_MBCHW)
        assert one.views.keep_LMB is not None
        assert other.views.keep_LMB is not None
        assert torch.equal(one.views.keep_LMB, other.views.keep_LMB)


def test_views_without_other_augmentation_are_the_crops() -> None:
    _, part = start(PLAIN)
    batch = next(epoch_batches(part, PLAIN, seed=3, epoch=1, num_blocks=3))
    plan = sample_crop(batch.numbers_B, Stream(3, "crop", 1), flip=True, padding=4)
    expected = normalise(to_unit(apply_crop(part.images.images_NCHW[batch.numbers_B], plan)))
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


@pytest.mark.parametrize(("images", "few"), [(50, 16), (1797, 500), (6000, 600)])
def test_a_tenth_is_held_out_on_the_split_and_of_few_images_up_to_a_third(images: int, few: int) -> None:
    data = tiny_data(images=images)
    trained, held_out = split_training_images(data, replace(PLAIN, train_on="split"))
    assert (len(trained), len(held_out)) == (images - few, few)


def test_the_two_parts_of_the_split_are_everything() -> None:
    data = tiny_data(images=50)
    trained, held_out = split_training_images(data, replace(PLAIN, train_on="split"))
    assert sorted([*trained.numbers_N.tolist(), *held_out.numbers_N.tolist()]) == list(range(50))
    assert torch.equal(held_out.images.images_NCHW, data.train.images_NCHW[held_out.numbers_N])
    everything, nothing = split_training_images(data, PLAIN)
    assert (len(everything), len(nothing)) == (50, 0)


if __name__ == "__main__":
    GOLDEN.write_text("\n".join(trace(PLAIN) + trace(EVERYTHING)) + "\n")
