from dataclasses import replace

import pytest
import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.nn import resnet
from counterpoint.policy import MemberPolicy
from counterpoint.seeding import Stream
from counterpoint.training.network import build_model
from tests.small import TINY

SINGLE = replace(TINY, num_members=None, policy=MemberPolicy())
RESNEXT = replace(TINY, model="resnext29", cardinality=2, base_width=4)
WIDE = replace(TINY, model="wide-resnet-10-1")
VIT = replace(TINY, model="vit", model_options={"patch_size": 2, "depth": 1, "width": 8, "heads": 2})


@pytest.mark.parametrize(
    ("experiment", "members"),
    [(TINY, 2), (SINGLE, 1), (RESNEXT, 2), (WIDE, 2), (VIT, 2)],
    ids=["resnet", "single", "resnext29", "wide-resnet", "vit"],
)
def test_a_network_has_the_experiments_members_and_the_datas_classes(experiment: Experiment, members: int) -> None:
    model = build_model(experiment, num_classes=5, in_channels=1, seed=0)
    assert model.num_members == members
    assert model(torch.randn(members, 2, 1, 8, 8)).shape == (members, 2, 5)


@pytest.mark.parametrize(
    ("experiment", "weight"),
    [(TINY, "stem.0.weight"), (WIDE, "stem.weight"), (VIT, "patches.weight")],
    ids=["resnet", "wide-resnet", "vit"],
)
def test_the_weights_depend_on_the_seed_alone(experiment: Experiment, weight: str) -> None:
    torch.manual_seed(0)
    first, reseeded = (build_model(experiment, 3, 3, seed=seed).state_dict() for seed in (0, 1))
    torch.manual_seed(1)
    again = build_model(experiment, 3, 3, seed=0).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first[f"network.{weight}"], reseeded[f"network.{weight}"])


def test_the_network_is_what_its_own_function_makes() -> None:
    """Plain network and members draw from one stream, one after the other."""
    generator = Stream(5, "initial weights").generator()
    expected = resnet(3, 2, 8, 4, in_channels=1, generator=generator).state_dict()
    found = build_model(TINY, 3, 1, seed=5).state_dict()
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in found)


def test_a_function_of_the_users_needs_the_users_word() -> None:
    with pytest.raises(InputError, match="nowhere:f is a function that is imported only if you name it yourself"):
        build_model(replace(TINY, model="nowhere:f"), 3, 1, seed=0)
