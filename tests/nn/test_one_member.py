"""One member at a time in the ensemble's own layers: what all together would have done."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from counterpoint.config import Experiment
from counterpoint.data import parts_of
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, batch_ensemble, resnet
from counterpoint.nn.one_member import check_member_by_member, only_member
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.training.batches import epoch_batches
from counterpoint.training.engines import make_engine
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState
from tests.small import TINY, noise_data

SMALL = replace(TINY, width=2, batch_size=6, batchnorm="per-member")
SMALL_VIT = {"width": 8, "depth": 1, "heads": 2}
CASES: dict[str, tuple[Experiment, dict[str, bool]]] = {
    "all augmentations": (SMALL, {}),
    "less memory": (SMALL, {"less_memory": True}),
    "consistency": (replace(SMALL, policy=MemberPolicy(augmix=AugMix((1.0, 3.0), jsd=12.0))), {}),
    "deep": (replace(SMALL, batchnorm="shared", ensemble="deep"), {}),
    "without BatchNorm": (replace(SMALL, width=Experiment.width, model="vit", model_options=SMALL_VIT), {}),
}


def steps(experiment: Experiment, **options: Any) -> Mapping[str, Tensor]:
    """The state after three steps in float64, one of them with a smaller batch."""
    images = parts_of(noise_data(16, 3), experiment).train
    model = build_model(experiment, 3, 3, seed=0, size=(8, 8)).double().train()
    engine = make_engine(TrainState.before_first_step(model, experiment), experiment, "eager", **options)
    options = {"num_blocks": model.num_blocks, "dtype": torch.float64}
    for batch in epoch_batches(images, experiment, seed=0, epoch=0, **options):
        update(engine, batch, 3)
    return engine.state.tensors()


@pytest.mark.parametrize("case", CASES)
def test_steps_member_by_member_are_steps_of_all(case: str) -> None:
    experiment, options = CASES[case]
    together, member_by_member = steps(experiment), steps(experiment, member_by_member=True, **options)
    assert together.keys() == member_by_member.keys()
    for name, tensor in together.items():
        assert torch.allclose(member_by_member[name], tensor, rtol=1e-10, atol=1e-12), name


@pytest.mark.parametrize("ensemble", ["batch", "deep"])
def test_only_one_member_is_there_and_all_are_back_afterwards(ensemble: str) -> None:
    model = build_model(replace(CASES["deep"][0] if ensemble == "deep" else SMALL, policy=MemberPolicy()), 3, 3, seed=0)
    views_MBCHW = torch.randn(2, 4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    expected_MBK = model.eval()(views_MBCHW)
    for index in range(2):
        with only_member(model, index):
            torch.testing.assert_close(model(views_MBCHW[index : index + 1])[0], expected_MBK[index])
    assert model.num_members == 2
    torch.testing.assert_close(model(views_MBCHW), expected_MBK)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_a_cumulative_mean_counts_a_batch_once() -> None:
    plain = nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2, momentum=None), nn.Flatten())
    model = batch_ensemble(plain, 2, batchnorm="per-member").double().train()
    twin = (
        batch_ensemble(
            nn.Sequential(nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2, momentum=None), nn.Flatten()), 2, batchnorm="per-member"
        )
        .double()
        .train()
    )
    twin.load_state_dict(model.state_dict())
    generator = torch.Generator().manual_seed(0)
    for _ in range(3):
        views = torch.randn(2, 4, 3, 2, 2, generator=generator, dtype=torch.float64)
        model(views)
        for index in range(2):
            with only_member(twin, index):
                twin(views[index : index + 1])
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(twin.state_dict()[name], tensor, rtol=1e-12, atol=1e-12)


def test_what_would_be_another_training_is_refused() -> None:
    with pytest.raises(InputError, match="BatchNorm is shared"):
        steps(replace(SMALL, batchnorm="shared"), member_by_member=True)
    drawing = batch_ensemble(nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5)), 2)
    with pytest.raises(InputError, match="layers that draw random numbers in training"):
        make_engine(TrainState.before_first_step(drawing, SMALL), SMALL, "eager", member_by_member=True)


def test_a_training_that_is_refused_leaves_no_run(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="BatchNorm is shared"):
        train(replace(SMALL, batchnorm="shared"), tmp_path, noise_data(12, 3), options=Options(member_by_member=True))
    assert not (tmp_path / "run.json").exists()


def test_one_network_is_one_member() -> None:
    network = resnet(3, width=2)
    assert not isinstance(network, Ensemble)
    check_member_by_member(Ensemble(network))
