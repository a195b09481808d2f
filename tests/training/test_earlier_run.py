"""A run that was begun before the redesign into rooms (commit 98b0d55) goes on, from its folder and from its parts.

Order, views and learning rates are the same exactly; losses to 1e-5, because the number of threads moves their bits.
"""

import hashlib
import json
import shutil
from itertools import islice
from pathlib import Path

import pytest
from torch import Tensor

from counterpoint.data import load, parts_of
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.runs.transfer import import_run
from counterpoint.training.batches import epoch_batches, steps_per_epoch, total_steps
from counterpoint.training.engines import Engine
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from counterpoint.training.optimiser import learning_rate
from counterpoint.training.step import TrainState

EARLIER = Path(__file__).parents[1] / "fixtures" / "run-of-98b0d55"


@pytest.fixture(params=["run", "parts"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    run = tmp_path / "run"
    if request.param == "run":
        shutil.copytree(EARLIER / "run", run)
    else:
        import_run(EARLIER / "parts", run)
    return run


def sha256(tensor: Tensor | None) -> str:
    assert tensor is not None
    return hashlib.sha256(tensor.contiguous().numpy().tobytes()).hexdigest()


def test_its_next_steps_are_what_they_would_have_been(folder: Path) -> None:
    run, data = load_run(folder), load("digits")
    part = parts_of(data, run.experiment).train
    model = build_model(run.experiment, len(data.train.classes), 1, run.seed).train()
    state = TrainState.before_first_step(model, run.experiment)
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    state.restore(checkpoint.tensors, checkpoint.step)
    total = total_steps(run.experiment, len(part))
    epoch, first = divmod(state.step, steps_per_epoch(run.experiment, len(part)))
    engine = Engine(state, run.experiment, model)
    batches = epoch_batches(
        part, run.experiment, seed=run.seed, epoch=epoch, first=first, num_blocks=state.model.num_blocks
    )
    for batch, expected in zip(
        islice(batches, 2), json.loads((EARLIER / "next_steps.json").read_text())["steps"], strict=True
    ):
        assert (state.step, epoch) == (expected["step"], expected["epoch"])
        assert learning_rate(run.experiment, state.step, total) == expected["learning_rate"]
        assert batch.numbers_B.tolist() == expected["numbers"]
        assert sha256(batch.views.views_MBCHW) == expected["views_sha256"]
        assert sha256(batch.views.keep_LMB) == expected["keep_sha256"]
        assert sha256(batch.views.amount_MB) == expected["amount_sha256"]
        state.sums.zero_()
        update(engine, batch, total)
        assert float(state.sums[0] / state.sums[2]) == pytest.approx(expected["loss"], rel=1e-5)


def test_it_goes_on_to_its_end(folder: Path) -> None:
    run = load_run(folder)
    assert train(run.experiment, folder, load("digits"), seed=run.seed, options=Options(device="cpu"))
    checkpoint = latest_checkpoint(folder)
    assert checkpoint is not None
    assert checkpoint.step == 30
    assert [record["step"] for record in run.read_log()] == [0, 15, 17, 30], "started, an epoch, started, an epoch"
