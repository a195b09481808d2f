"""The training of a deep ensemble: each member learns as it would alone."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor

from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data import parts_of
from counterpoint.nn import Ensemble, extract_member
from counterpoint.policy import AugMix, MemberPolicy, StochasticDepth
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.training.batches import Batch, epoch_batches
from counterpoint.training.loop import Options, train
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState, take_step
from tests.small import ALL_AUGMENTATIONS, TINY, noise_data

DEEP = replace(TINY, ensemble="deep", policy=MemberPolicy())
SINGLE = replace(DEEP, ensemble="batch", num_members=None)
CONSISTENT = MemberPolicy(augmix=AugMix((1.0, 4.0), jsd=12.0), stochastic_depth=StochasticDepth((0.2, 0.5)))
ON_CPU = Options(device="cpu")


def batches(experiment: Experiment) -> Iterator[Batch]:
    part = parts_of(noise_data(20, 3), experiment).train
    return epoch_batches(part, experiment, seed=0, epoch=0, num_blocks=3, dtype=torch.float64)


def of_member(views: Views, index: int) -> Views:
    """What one member sees, as an ensemble of one."""

    def one(tensor: Tensor | None, axis: int = 0) -> Tensor | None:
        return None if tensor is None else tensor.narrow(axis, index, 1)

    return Views(
        views.views_MBCHW[index : index + 1],
        one(views.amount_MB),
        one(views.keep_LMB, axis=1),
        one(views.companions_2MBCHW, axis=1),
    )


@pytest.mark.parametrize(
    "experiment",
    [
        DEEP,
        replace(DEEP, policy=ALL_AUGMENTATIONS),
        replace(DEEP, policy=CONSISTENT),
        replace(DEEP, optimiser="adamw", learning_rate=0.001),
    ],
    ids=["plain", "all augmentations", "consistency", "AdamW"],
)
def test_every_member_takes_the_steps_that_it_would_take_alone(experiment: Experiment) -> None:
    """Gradients, weight decay, momentum and BatchNorm's statistics, with whatever its views need."""
    model = build_model(experiment, 3, 3, seed=0).double().train()
    together = TrainState.before_first_step(model, experiment)
    alone = [
        TrainState.before_first_step(Ensemble(extract_member(model, i)), replace(experiment, ensemble="batch"))
        for i in range(2)
    ]
    for batch in batches(experiment):
        take_step(together, batch, experiment, model)
        for i, state in enumerate(alone):
            mine = replace(batch, views=of_member(batch.views, i))
            take_step(state, mine, replace(experiment, ensemble="batch"), state.model)
    for i, state in enumerate(alone):
        found = extract_member(model, i).state_dict()
        for name, expected in state.model.network.state_dict().items():
            torch.testing.assert_close(found[name], expected, rtol=1e-9, atol=1e-12, msg=name)
    sums = torch.stack([state.sums for state in alone]).sum(dim=0)
    torch.testing.assert_close(together.sums, sums, msg="the loss that is logged is the mean over the members' views")


def trained(experiment: Experiment, folder: Path) -> dict[str, Tensor]:
    """The network after an ordinary training, in any number of pieces."""
    assert train(experiment, folder, noise_data(36, 4), options=ON_CPU)
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    return {k.removeprefix("model."): v for k, v in checkpoint.tensors.items() if k.startswith("model.")}


def test_the_first_member_becomes_the_single_network_of_its_seed(tmp_path: Path) -> None:
    """To the last bit: twice the mean over two members is exactly the member's own mean."""
    deep, single = trained(DEEP, tmp_path / "deep"), trained(SINGLE, tmp_path / "single")
    for name, expected in single.items():
        assert torch.equal(deep[name.replace("network.", "network.members.0.", 1)], expected), name
    assert not torch.equal(deep["network.members.1.stem.0.weight"], single["network.stem.0.weight"])


def test_an_interrupted_training_ends_with_the_same_bits(tmp_path: Path) -> None:
    experiment = replace(DEEP, policy=ALL_AUGMENTATIONS)
    whole = trained(experiment, tmp_path / "whole")
    asked = iter([False, False, True])
    assert not train(
        experiment, tmp_path / "parts", noise_data(36, 4), options=ON_CPU, should_stop=lambda: next(asked, True)
    )
    parts = trained(experiment, tmp_path / "parts")
    assert parts.keys() == whole.keys()
    assert all(torch.equal(parts[name], whole[name]) for name in whole)


def test_members_are_drawn_from_streams_of_their_own() -> None:
    four = build_model(replace(DEEP, num_members=4), 3, 3, seed=0).state_dict()
    two, again, reseeded = (build_model(DEEP, 3, 3, seed=seed).state_dict() for seed in (0, 0, 1))
    single = build_model(SINGLE, 3, 3, seed=0).state_dict()
    stem = "stem.0.weight"
    assert all(torch.equal(two[name], again[name]) for name in two)
    assert all(torch.equal(two[name], four[name]) for name in two), "more members leave the first as they are"
    assert all(torch.equal(four[name.replace("network.", "network.members.0.", 1)], single[name]) for name in single)
    stems = [four[f"network.members.{i}.{stem}"] for i in range(4)] + [reseeded[f"network.members.1.{stem}"]]
    assert len({tuple(weight.flatten().tolist()) for weight in stems}) == 5
