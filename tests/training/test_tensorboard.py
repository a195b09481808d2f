"""What TensorBoard gets is what the log has."""

from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.policy import MemberPolicy
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from tests.small import TINY, noise_data

EXPERIMENT = replace(TINY, width=2, policy=MemberPolicy())
WITH_BOARD = Options(device="cpu", tensorboard=True)


def test_tensorboard_gets_the_epochs(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", noise_data(36, 3), options=WITH_BOARD)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    epochs = [record for record in load_run(tmp_path / "run").read_log() if record["event"] == "epoch"]
    written = [(event.step, pytest.approx(event.value)) for event in events.Scalars("train/loss")]
    assert [(epoch["step"], epoch["loss"]) for epoch in epochs] == written
    for name in ("below_eps", "dead_scales", "spread_r", "spread_s"):
        written = [(event.step, pytest.approx(event.value)) for event in events.Scalars(f"health/{name}")]
        assert [(epoch["step"], epoch["health"][name]) for epoch in epochs] == written


def test_a_plain_network_has_no_spread_in_tensorboard(tmp_path: Path) -> None:
    plain = replace(EXPERIMENT, num_members=None, epochs=1)
    train(plain, tmp_path / "run", noise_data(36, 3), options=WITH_BOARD)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    assert sorted(name for name in events.Tags()["scalars"] if "health" in name) == [
        "health/below_eps",
        "health/dead_scales",
    ]


def test_validation_is_there_where_epochs_are_validated(tmp_path: Path) -> None:
    validating = replace(WITH_BOARD, validate=True)
    train(replace(EXPERIMENT, train_on="split"), tmp_path / "run", noise_data(36, 3), options=validating)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "run" / "tensorboard")).Reload()
    epochs = [record for record in load_run(tmp_path / "run").read_log() if record["event"] == "epoch"]
    for name in ("error", "nll", "ece"):
        written = [(event.step, pytest.approx(event.value)) for event in events.Scalars(f"validation/{name}")]
        assert [(epoch["step"], epoch["validation"][name]) for epoch in epochs] == written
