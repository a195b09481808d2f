"""Networks of others in training: exact resume although they draw, and what a user is told."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from counterpoint.config import Experiment
from counterpoint.errors import InputError
from counterpoint.nn import Ensemble
from counterpoint.policy import MemberPolicy, StochasticDepth
from counterpoint.records.progress import checkpoint_paths
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.training.loop import Options, train
from counterpoint.training.preparing import introduce
from tests.heard import Heard
from tests.small import TINY, noise_data

SOURCE = """
from torch import nn

def with_dropout(num_classes, in_channels, width=6):
    shared = nn.Linear(width, width)
    return nn.Sequential(nn.Conv2d(in_channels, width, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5),
                         shared, nn.ReLU(), shared, nn.Linear(width, num_classes))
"""


@pytest.fixture
def experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Experiment]:
    name = f"dropping_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    yield replace(TINY, model=f"{name}:with_dropout", policy=MemberPolicy(), epochs=2)
    sys.modules.pop(name, None)


def weights(folder: Path) -> dict[str, torch.Tensor]:
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    return dict(checkpoint.tensors)


def test_a_network_that_draws_goes_on_as_if_it_had_not_stopped(tmp_path: Path, experiment: Experiment) -> None:
    data, options = noise_data(36, 4), Options(device="cpu")
    torch.manual_seed(1)
    before = torch.get_rng_state()
    assert train(experiment, tmp_path / "whole", data, options=options)
    assert torch.equal(torch.get_rng_state(), before), "torch's generator is put back"
    torch.manual_seed(2)
    steps = iter(range(100))
    assert not train(experiment, tmp_path / "parts", data, options=options, should_stop=lambda: next(steps) >= 2)
    torch.manual_seed(3)
    assert train(experiment, tmp_path / "parts", data, options=options)
    whole, parts = weights(tmp_path / "whole"), weights(tmp_path / "parts")
    assert whole.keys() == parts.keys()
    assert all(torch.equal(whole[name], parts[name]) for name in whole)


def test_other_weights_than_those_of_the_function_are_named(tmp_path: Path, experiment: Experiment) -> None:
    data = noise_data(36, 4)
    assert not train(experiment, tmp_path / "run", data, options=Options(device="cpu", max_minutes=0.0))
    assert checkpoint_paths(tmp_path / "run")
    module = sys.modules[experiment.model.partition(":")[0]]
    old = module.with_dropout
    module.with_dropout = lambda **given: old(**given, width=8)  # type: ignore[attr-defined]
    with pytest.raises(
        InputError, match=r"weights in .* are not those of .*:with_dropout as it is made now \(.*size mis"
    ):
        train(experiment, tmp_path / "run", data, options=Options(device="cpu"))


def test_branches_that_cannot_be_dropped_leave_no_run_behind(tmp_path: Path, experiment: Experiment) -> None:
    dropping = replace(experiment, policy=MemberPolicy(stochastic_depth=StochasticDepth((0.1, 0.2))))
    with pytest.raises(
        InputError, match=r"has no residual branches that stochastic depth can drop; set policy.stochastic_"
    ):
        train(dropping, tmp_path / "run", noise_data(36, 4), options=Options(device="cpu"))
    assert not (tmp_path / "run" / "run.json").exists()


class Report:
    def __str__(self) -> str:
        return "all of it converted"


@pytest.mark.parametrize(
    ("changes", "noted", "warned"),
    [
        ({"model": "timm/a"}, ["timm/a: all of it converted"], []),
        ({"model": "timm/a", "num_members": None}, [], []),
        ({"model": "vit"}, [], []),
        ({"model": "timm/a", "pretrained": True, "init_std": None}, ["timm/a: all of it converted"], []),
        ({"model": "timm/a", "pretrained": True, "init_std": 0.1}, ["timm/a: all of it converted"], []),
        (
            {"model": "timm/a", "pretrained": True},
            ["timm/a: all of it converted"],
            [
                "the pretrained weights are multiplied by r and s from N(1, 0.5²), and little is left of them; "
                "init_std none keeps the members near them"
            ],
        ),
    ],
)
def test_what_is_told_of_another_network(changes: dict[str, Any], noted: list[str], warned: list[str]) -> None:
    model = Ensemble(torch.nn.Identity(), 2)
    model.conversion = Report()  # type: ignore[assignment]
    heard = Heard()
    introduce(model, replace(TINY, policy=MemberPolicy(), **changes), heard)
    assert (heard.notes, heard.warnings) == (noted, warned)
