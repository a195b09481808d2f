from dataclasses import replace

import pytest
import torch

from counterpoint.config import Experiment
from counterpoint.policy import MemberPolicy
from counterpoint.training.network import build_model
from tests.small import TINY

SINGLE = replace(TINY, num_members=None, policy=MemberPolicy())
RESNEXT = replace(TINY, model="resnext29", cardinality=2, base_width=4)


@pytest.mark.parametrize(
    ("experiment", "members"), [(TINY, 2), (SINGLE, 1), (RESNEXT, 2)], ids=["resnet", "single", "resnext29"]
)
def test_a_network_has_the_experiments_members_and_the_datas_classes(experiment: Experiment, members: int) -> None:
    model = build_model(experiment, num_classes=5, in_channels=1, seed=0)
    assert model.num_members == members
    assert model(torch.randn(members, 2, 1, 8, 8)).shape == (members, 2, 5)


def test_the_weights_depend_on_the_seed_alone() -> None:
    torch.manual_seed(0)
    first, reseeded = (build_model(TINY, 3, 3, seed=seed).state_dict() for seed in (0, 1))
    torch.manual_seed(1)
    again = build_model(TINY, 3, 3, seed=0).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["network.stem.0.weight"], reseeded["network.stem.0.weight"])
