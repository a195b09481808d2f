"""AugMix's consistency loss against the formulas of its paper, and a training step with it against the obvious loop."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from counterpoint.augment.consistency import jensen_shannon
from counterpoint.augment.views import Views, make_views, sample_views
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.data.split import split_training_images
from counterpoint.nn import Ensemble
from counterpoint.policy import AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.training.network import build_model
from counterpoint.training.optimizer import make_optimiser
from counterpoint.training.step import TrainState, epoch_batches, take_step

AUGMIX = AugMix((1.0, 4.0), jsd=12.0)
EXPERIMENT = Experiment(
    "jsd",
    "digits",
    train_on="all",
    model="resnet",
    width=4,
    num_members=2,
    batch_size=6,
    policy=MemberPolicy(augmix=AUGMIX),
)


def images(count: int = 6) -> Tensor:
    return Stream(0, "images").integers(torch.arange(count), 3 * 64, 256).view(count, 3, 8, 8).to(torch.uint8)


def views(policy: MemberPolicy) -> Views:
    numbers = torch.arange(6)
    return sample_views(
        images(), policy, num_members=2, indices_B=numbers, steps_B=0 * numbers, seed=1, epoch=2, num_blocks=3
    )


def divergence(probs_VK: np.ndarray) -> float:
    mixture = probs_VK.mean(axis=0)
    return float(np.mean([np.sum(p * np.log(p / mixture)) for p in probs_VK]))


def test_the_divergence_is_that_of_the_augmix_paper() -> None:
    logits_VNK = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    expected = [divergence(logits_VNK[:, n].softmax(dim=-1).numpy()) for n in range(5)]
    assert float(jensen_shannon(logits_VNK)) == pytest.approx(np.mean(expected), rel=1e-12)


def test_the_divergence_has_its_bounds() -> None:
    same = torch.randn(1, 5, 4).expand(3, 5, 4)
    assert float(jensen_shannon(same)) == pytest.approx(0, abs=1e-6)
    certain_of_different_classes = 1000 * torch.eye(3)[:, None, :]
    assert float(jensen_shannon(certain_of_different_classes)) == pytest.approx(np.log(3), rel=1e-6)


def test_a_member_sees_its_clean_view_and_two_augmix_views() -> None:
    with_jsd, without = views(EXPERIMENT.policy), views(MemberPolicy(augmix=replace(AUGMIX, jsd=0.0)))
    assert without.companions_2MBCHW is None
    assert with_jsd.companions_2MBCHW is not None
    assert torch.equal(with_jsd.views_MBCHW, without.views_MBCHW)
    clean, second = with_jsd.companions_2MBCHW
    assert torch.equal(clean, views(MemberPolicy()).views_MBCHW)
    assert (second != with_jsd.views_MBCHW).flatten(2).any(dim=2).float().mean() > 0.5
    assert (second != clean).flatten(2).any(dim=2).float().mean() > 0.5
    assert torch.equal(make_views(images(), EXPERIMENT.policy, num_members=2, seed=1, epoch=2), without.views_MBCHW)


def test_views_of_several_steps_made_at_once_are_the_same() -> None:
    numbers = torch.arange(12)
    data = DataSet(
        "tiny", ImageSet(images(12), numbers % 3, ("a", "b", "c")), ImageSet(images(12), numbers % 3, tuple("abc"))
    )
    part, _ = split_training_images(data, EXPERIMENT)
    singly, in_pairs = (
        list(epoch_batches(part, EXPERIMENT, seed=0, epoch=0, at_once=at_once, num_blocks=3)) for at_once in (1, 2)
    )
    for left, right in zip(singly, in_pairs, strict=True):
        assert left.views.companions_2MBCHW is not None
        assert right.views.companions_2MBCHW is not None
        assert torch.equal(left.views.companions_2MBCHW, right.views.companions_2MBCHW)


@pytest.mark.parametrize("depth", [None, StochasticDepth((0.2, 0.5))], ids=["plain", "stochastic depth"])
def test_a_step_is_that_of_the_obvious_loop(depth: StochasticDepth | None) -> None:
    experiment = replace(EXPERIMENT, policy=replace(EXPERIMENT.policy, stochastic_depth=depth))
    numbers = torch.arange(6)
    data = DataSet("tiny", *[ImageSet(images(), numbers % 3, ("a", "b", "c"))] * 2)
    part, _ = split_training_images(data, experiment)
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
