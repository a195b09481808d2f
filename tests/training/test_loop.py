"""Training into a folder: exact resume after real kills, clean stops, and refusals."""

import copy
import itertools
import json
import math
import os
import sys
import time
import weakref
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import counterpoint.time_limit
import counterpoint.training.loop
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.nn import Health, measure_health
from counterpoint.runs.checkpoints import Checkpoint, finished_checkpoint, latest_checkpoint, save_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.training.batches import Batch
from counterpoint.training.engines import Engine
from counterpoint.training.loop import Options, train, update
from counterpoint.training.network import build_model
from tests.heard import Heard
from tests.small import noise_data
from tests.training.tiny_run import Plans, lives

KILLS: Plans = {
    "whole": [],
    "before any checkpoint and in the first": [("update", 2), ("fsync", 1)],
    "in the second epoch, at its checkpoint, in the third": [("update", 9), ("replace", 1), ("update", 4)],
    "at the very last rename": [("replace", 3)],
}
EXPERIMENT = Experiment("small", "digits", model="resnet", width=2, num_members=2, epochs=3, batch_size=8)
ON_CPU = Options(device="cpu")

KilledRuns = dict[str, tuple[Path, list[dict[str, Any]]]]


def small_data() -> DataSet:
    """Grey noise of 54 images, 36 of which are trained on."""
    return noise_data(54, 3, channels=1, name="small")


def final_state(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(sorted((folder / "checkpoints").glob("step-*"))[-1])


def epochs(folder: Path) -> list[dict[str, Any]]:
    """The log's epochs without what depends on the clock."""
    records = [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]
    return [{k: v for k, v in r.items() if k not in ("seconds", "time")} for r in records if r["event"] == "epoch"]


@pytest.fixture(scope="module")
def killed_runs(tmp_path_factory: pytest.TempPathFactory) -> KilledRuns:
    """Each run's folder, and what its kills left. One process forks all lives."""
    folder = tmp_path_factory.mktemp("runs")
    plans = {str(folder / name): kills for name, kills in KILLS.items()}
    left = lives("tests.training.tiny_run", plans)
    return {name: (folder / name, found) for name, found in zip(KILLS, left, strict=True)}


@pytest.fixture
def uninterrupted(killed_runs: KilledRuns) -> Path:
    folder, left = killed_runs["whole"]
    assert left == []
    return folder


@pytest.mark.parametrize("name", [name for name, kills in KILLS.items() if kills])
def test_a_killed_run_ends_with_the_same_bits(killed_runs: KilledRuns, uninterrupted: Path, name: str) -> None:
    folder, left = killed_runs[name]
    for (place, count), killed in zip(KILLS[name], left, strict=True):
        assert (killed["place"], killed["count"]) == (place, count)
        unfinished = [file for file in killed["held"] if file.endswith(".tmp")]
        assert len(unfinished) == (0 if place == "update" else 1), "the kill landed inside checkpoint writing"
        for file in unfinished:
            assert file.split(".tmp")[0].strip(".").rpartition(".")[0] not in killed["held"]
    ours, theirs = final_state(folder), final_state(uninterrupted)
    assert ours.keys() == theirs.keys()
    assert any(key.startswith("momentum.") for key in ours)
    for key in ours:
        assert torch.equal(ours[key], theirs[key]), key
    assert epochs(folder) == epochs(uninterrupted)
    assert not list((folder / "checkpoints").glob(".*")), "what the kill left behind is swept away"


def test_the_last_two_checkpoints_are_kept(uninterrupted: Path) -> None:
    names = sorted(path.name for path in (uninterrupted / "checkpoints").iterdir())
    assert names == ["step-000000010.safetensors", "step-000000015.safetensors"]


ADAMW = replace(EXPERIMENT, optimiser="adamw", learning_rate=0.01)
STEM = "network.stem.0.weight"


@pytest.mark.parametrize("experiment", [EXPERIMENT, ADAMW], ids=["SGD", "AdamW"])
def test_a_stop_in_mid_epoch_changes_nothing(tmp_path: Path, experiment: Experiment) -> None:
    data = small_data()
    assert train(experiment, tmp_path / "whole", data, options=ON_CPU)
    stops = 0
    finished = False
    while not finished:
        calls = 0

        def after_two_steps() -> bool:
            nonlocal calls
            calls += 1
            return calls == 2

        finished = train(experiment, tmp_path / "parts", data, options=ON_CPU, should_stop=after_two_steps)
        stops += not finished
    assert stops >= 5
    ours, theirs = final_state(tmp_path / "parts"), final_state(tmp_path / "whole")
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert epochs(tmp_path / "parts") == epochs(tmp_path / "whole")


def test_the_checkpoint_that_training_goes_on_from_takes_no_memory_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is as large as the network and what the optimiser keeps."""
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: True)
    alive: list[weakref.ref[Checkpoint]] = []

    def remembered(*arguments: Any) -> Checkpoint:
        checkpoint = latest_checkpoint(*arguments)
        assert checkpoint is not None
        alive.append(weakref.ref(checkpoint))
        return checkpoint

    monkeypatch.setattr("counterpoint.training.preparing.latest_checkpoint", remembered)
    held: list[Checkpoint] = []

    def look() -> bool:
        held.extend(checkpoint for one in alive if (checkpoint := one()) is not None)
        return False

    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=look)
    assert (len(alive), held) == (1, [])


def test_max_minutes_stops_with_a_checkpoint(tmp_path: Path) -> None:
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=replace(ON_CPU, max_minutes=0.0))
    checkpoint = latest_checkpoint(load_run(tmp_path / "run").folder)
    assert checkpoint is not None
    assert checkpoint.step == 1
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)


def test_no_step_is_begun_that_would_end_after_max_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step takes 20 seconds of the clock, and a minute has room for two of them and a checkpoint."""
    seconds, now = 0.0, time.monotonic()
    clock = SimpleNamespace(monotonic=lambda: now + seconds)

    def slow(engine: Engine, batch: Batch, total: int) -> None:
        nonlocal seconds
        seconds += 20
        update(engine, batch, total)

    monkeypatch.setattr(counterpoint.training.loop, "time", clock)
    monkeypatch.setattr(counterpoint.time_limit, "time", clock)
    monkeypatch.setattr(counterpoint.training.loop, "update", slow)
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=replace(ON_CPU, max_minutes=1.0))
    checkpoint = latest_checkpoint(tmp_path / "run")
    assert checkpoint is not None
    assert (checkpoint.step, seconds) == (2, 40)


def test_a_finished_run_is_left_alone(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    before = final_state(tmp_path / "run")
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    assert all(torch.equal(before[k], v) for k, v in final_state(tmp_path / "run").items())
    started = [line["step"] for line in load_run(tmp_path / "run").read_log() if line["event"] == "started"]
    assert started == [0], "results would name a part of the training that there never was"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a descriptor's path")
def test_the_log_is_on_the_disk_before_the_checkpoint_that_follows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a power failure a finished run without its last epoch could not be evaluated."""
    synced: list[tuple[str, int]] = []
    fsync = os.fsync

    def note(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        synced.append((path.name, path.read_text().count('"event": "epoch"') if path.name == "log.jsonl" else 0))

    monkeypatch.setattr(os, "fsync", note)
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    (saved,) = [i for i, (name, _) in enumerate(synced) if name.startswith(".step-000000015")]
    logged = [i for i, (name, epochs) in enumerate(synced) if (name, epochs) == ("log.jsonl", 3)]
    assert logged
    assert logged[0] < saved


def test_training_learns_and_the_watcher_sees_it(tmp_path: Path) -> None:
    heard = Heard()
    seen = heard.trainings
    experiment = replace(EXPERIMENT, epochs=30, policy=replace(EXPERIMENT.policy, flip=False, crop_padding=0))
    train(experiment, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    log = epochs(tmp_path / "run")
    assert log[-1]["loss"] < 0.6 * log[0]["loss"]
    assert log[-1]["learning_rate"] == pytest.approx(1e-6)
    assert seen[-1].step == seen[-1].total_steps == 150
    assert seen[-1].epoch == seen[-1].epochs == 30
    assert seen[-1].error == pytest.approx(log[-1]["error"])


def test_the_watcher_hears_of_a_training_when_nothing_can_be_refused_any_more(tmp_path: Path) -> None:
    heard = Heard()
    seen = heard.trainings
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: True)
    with pytest.raises(InputError, match="holds another run"):
        train(replace(EXPERIMENT, epochs=4), tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert seen == []
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert (seen[0].step, seen[0].epoch, seen[0].images_per_second) == (1, 1, 0)
    assert all(progress.images_per_second > 0 for progress in seen[1:])
    told = len(seen)
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert len(seen) == told, "a finished run has no training"
    assert heard.notes == [f"{tmp_path / 'run'} goes on from step 1 of {seen[0].total_steps}"]
    train(EXPERIMENT, tmp_path / "new", small_data(), options=ON_CPU, watcher=heard)
    assert (seen[told].step, seen[told].epoch) == (0, 1)
    assert math.isnan(seen[told].loss)


def test_the_watcher_hears_how_many_epochs_the_steps_make(tmp_path: Path) -> None:
    heard = Heard()
    seen = heard.trainings
    train(replace(EXPERIMENT, steps=6), tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert {progress.epochs for progress in seen} == {2}, "an epoch has five steps"
    assert (seen[-1].step, seen[-1].epoch) == (6, 2), "the last step is told too, within an epoch"


def test_the_speed_is_that_of_this_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter([False, True])
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: next(asked))
    seconds = itertools.chain([0.0], itertools.repeat(2000.0))  # at the start, and at every look afterwards
    monkeypatch.setattr(counterpoint.training.loop, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    heard = Heard()
    seen = heard.trainings
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert seen[-1].step == 15
    # Two steps of 8 of the 36 images were taken before; the last batch of each of the three epochs has four.
    assert seen[-1].images_per_second == pytest.approx((3 * 36 - 2 * 8) / 2000, rel=0.01)


def test_seeds_differ(tmp_path: Path) -> None:
    for seed in (0, 1):
        train(EXPERIMENT, tmp_path / str(seed), small_data(), seed=seed, options=ON_CPU)
    first, second = (final_state(tmp_path / name)["model.network.stem.0.weight"] for name in ("0", "1"))
    assert not torch.equal(first, second)


def test_a_folder_with_something_else_is_refused(tmp_path: Path) -> None:
    data = small_data()
    train(EXPERIMENT, tmp_path / "run", data, options=ON_CPU)
    with pytest.raises(InputError, match=r"holds another run \(epochs: 3 → 4; seed: 0 → 7\)"):
        train(replace(EXPERIMENT, epochs=4), tmp_path / "run", data, seed=7, options=ON_CPU)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("x")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        train(EXPERIMENT, tmp_path / "full", data, options=ON_CPU)
    assert [entry.name for entry in (tmp_path / "full").iterdir()] == ["thesis.tex"], "no lock is left in it"


def test_two_trainings_in_one_folder_are_refused(tmp_path: Path) -> None:
    data = small_data()

    def train_beside() -> bool:
        with pytest.raises(InputError, match="another process is training"):
            train(EXPERIMENT, tmp_path / "run", data, options=ON_CPU)
        return True

    assert not train(EXPERIMENT, tmp_path / "run", data, options=ON_CPU, should_stop=train_beside)


DIVERGING = replace(EXPERIMENT, learning_rate=1e30)


def test_divergence_is_said_and_keeps_the_checkpoint(tmp_path: Path) -> None:
    lower = r"lower learning_rate \(now 1e\+30\) in a new run"
    with pytest.raises(
        InputError, match=rf"after step 2 the loss is nan\. There is no checkpoint from before; {lower}"
    ):
        train(DIVERGING, tmp_path / "none", small_data(), options=ON_CPU)
    assert latest_checkpoint(load_run(tmp_path / "none").folder) is None
    assert not train(DIVERGING, tmp_path / "one", small_data(), options=ON_CPU, should_stop=lambda: True)
    with pytest.raises(InputError, match=rf"after step 2 the loss is nan\. The checkpoint of step 1 is kept; {lower}"):
        train(DIVERGING, tmp_path / "one", small_data(), options=ON_CPU)
    kept = latest_checkpoint(load_run(tmp_path / "one").folder)
    assert kept is not None
    assert kept.step == 1


def test_nobody_is_advised_to_go_on_with_a_run_that_diverged(tmp_path: Path) -> None:
    for _ in range(2):
        heard = Heard()
        with pytest.raises(InputError, match="training diverged: after step 2"):
            train(DIVERGING, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
        with pytest.raises(InputError, match=r"diverged after step 2 of 15, and would again; .* lower learning_rate"):
            finished_checkpoint(load_run(tmp_path / "run"))
    assert heard.warnings == [
        f"training in {tmp_path / 'run'} diverged after step 2; with the same settings it is likely to diverge again; "
        "train a new run with a lower learning_rate in another folder (--out)"
    ]


def test_weights_that_overflow_in_the_last_update_are_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def overflow(engine: Engine, batch: Batch, total: int) -> None:
        update(engine, batch, total)
        if engine.state.step == 2:
            next(engine.state.model.parameters()).data[0] = math.inf

    monkeypatch.setattr(counterpoint.training.loop, "update", overflow)
    asked = iter([False, True])
    with pytest.raises(InputError, match=r"after step 2 network.stem.0.weight is not finite\. There is no checkpoint"):
        train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: next(asked))
    assert latest_checkpoint(tmp_path / "run") is None


def test_the_time_of_all_processes_counts(tmp_path: Path) -> None:
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: True)
    run = load_run(tmp_path / "run")
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    save_checkpoint(run.folder, Checkpoint(checkpoint.tensors, checkpoint.step, seconds=5000.0))
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    assert run.read_log()[-1]["seconds"] > 5000


def test_after_damage_training_goes_on_from_the_checkpoint_before(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    stops = iter([False] * 7 + [True, True])  # after an epoch and three steps, and a step later
    run, heard = tmp_path / "damaged", Heard()
    for _ in range(2):
        assert not train(EXPERIMENT, run, small_data(), options=ON_CPU, should_stop=lambda: next(stops))
    newest = sorted((run / "checkpoints").iterdir())[-1]
    content = bytearray(newest.read_bytes())
    content[-100] ^= 4
    newest.write_bytes(content)
    assert train(EXPERIMENT, run, small_data(), options=ON_CPU, watcher=heard)
    (warning,) = heard.warnings
    assert "step-000000009.safetensors is damaged (its SHA-256 is not the one" in warning
    assert "of step 8, is intact and is used" in warning
    assert all(torch.equal(value, final_state(run)[name]) for name, value in final_state(tmp_path / "run").items())
    assert epochs(run) == epochs(tmp_path / "run")


def test_a_finished_run_whose_last_checkpoint_is_damaged_says_so(tmp_path: Path) -> None:
    asked = iter([False] * 13 + [True])
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: next(asked))
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    newest = sorted((tmp_path / "run" / "checkpoints").iterdir())[-1]
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.raises(InputError, match=r"15.safetensors is damaged \(.* is not finished: 14 of 15 steps are done"):
        finished_checkpoint(load_run(tmp_path / "run"))


@pytest.mark.parametrize(
    ("experiment", "change", "words"),
    [
        (EXPERIMENT, lambda tensors: tensors.pop("sums"), "sums is missing"),
        (EXPERIMENT, lambda tensors: tensors.update(sums=torch.zeros(1)), r"sums is \[1\], and must be \[3\]"),
        (EXPERIMENT, lambda tensors: tensors.update({"momentum.x": torch.zeros(1)}), r"momentum.x is \[1\]"),
        (EXPERIMENT, lambda tensors: tensors.update({"model.x": torch.zeros(1)}), "Unexpected key"),
        (EXPERIMENT, lambda tensors: tensors.clear(), "is missing|Missing key"),
        (ADAMW, lambda tensors: tensors.pop(f"mean_square.{STEM}"), f"mean_square.{STEM} is missing"),
        (ADAMW, lambda tensors: tensors.update({f"steps.{STEM}": torch.ones(2)}), rf"steps.{STEM} is \[2\]"),
        (ADAMW, lambda tensors: tensors.update({f"momentum.{STEM}": torch.ones(2)}), rf"momentum.{STEM} is \[2\]"),
    ],
    ids=["no sums", "other sums", "foreign momentum", "foreign weight", "nothing", "half", "steps", "of SGD"],
)
def test_a_checkpoint_with_other_tensors_is_refused(
    tmp_path: Path, experiment: Experiment, change: Callable[[dict[str, torch.Tensor]], Any], words: str
) -> None:
    assert not train(experiment, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: True)
    tensors = final_state(tmp_path / "run")
    change(tensors)
    save_checkpoint(tmp_path / "run", Checkpoint(tensors, 1, seconds=0.0))
    with pytest.raises(InputError, match=rf"the weights in .*run are not those of resnet .*{words}"):
        train(experiment, tmp_path / "run", small_data(), options=ON_CPU)


def test_a_log_cut_short_is_mended(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    log = tmp_path / "run" / "log.jsonl"
    whole = epochs(tmp_path / "run")
    log.write_text(log.read_text() + '{"event": "epo')
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    assert epochs(tmp_path / "run") == whole


def test_a_schedule_that_does_not_go_with_the_steps_is_said_once(tmp_path: Path) -> None:
    experiment, heard, stops = replace(EXPERIMENT, batch_size=100, warmup_steps=3), Heard(), iter([True, False, False])
    for finished in (False, True):
        ended = train(
            experiment, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard, should_stop=lambda: next(stops)
        )
        assert ended == finished
    assert heard.warnings == [
        "warmup_steps is 3, and there are 3 steps in all: the learning rate never reaches 0.1; "
        "set fewer warmup_steps, or train longer",
        "batch_size is 100, and there are 36 images to train on: every step has all of them; for more steps per epoch "
        "set batch_size=8 and learning_rate=0.008",
    ]


def test_a_learning_rate_of_sgd_is_questioned_with_adamw(tmp_path: Path) -> None:
    heard = Heard()
    too_much = replace(ADAMW, learning_rate=0.1, epochs=1)
    train(too_much, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert heard.warnings[0].startswith(
        "learning_rate is 0.1, as for SGD; with AdamW networks seldom learn at more than"
    )
    heard = Heard()
    train(replace(ADAMW, epochs=1), tmp_path / "other", small_data(), options=ON_CPU, watcher=heard)
    assert not [warning for warning in heard.warnings if "AdamW" in warning]


def test_a_training_from_python_warns_without_a_watcher(tmp_path: Path) -> None:
    """`replace` keeps a learning rate, and nobody who gives it optimiser="adamw" may miss that it is SGD's."""
    with pytest.warns(UserWarning, match="learning_rate is 0.1, as for SGD; with AdamW"):
        assert train(replace(EXPERIMENT, optimiser="adamw", steps=1), tmp_path / "run", small_data(), options=ON_CPU)


def test_a_training_without_end_is_refused(tmp_path: Path) -> None:
    endless = replace(EXPERIMENT, epochs=1_000_000, batch_size=1)
    with pytest.raises(
        InputError, match=r"1,000,000 epochs are 1,\d+,000,000 steps; at most 999,999,999 are possible: set fewer"
    ):
        train(endless, tmp_path / "run", noise_data(2000, 3, size=4), options=ON_CPU)


def test_options_without_a_meaning_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="max_minutes is inf; it must be a number, or be left out for no limit"):
        Options(max_minutes=math.inf)
    with pytest.raises(InputError, match=r"seed is 9223372036854775808; it must be 9,223,372,036,854,775,807 at most"):
        train(EXPERIMENT, tmp_path / "run", small_data(), seed=2**63, options=ON_CPU)
    assert not (tmp_path / "run" / "run.json").exists()


def dying(model: torch.nn.Module, dead: int) -> None:
    """Put so many of the network's 42 BatchNorm scales to 0."""
    with torch.no_grad():
        for norm in (m for m in model.modules() if isinstance(m, torch.nn.BatchNorm2d)):
            norm.weight.fill_(1.0)
            norm.weight[:dead] = 0.0
            dead = max(dead - norm.num_features, 0)


def test_each_epoch_of_the_log_has_the_networks_health(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    log = epochs(tmp_path / "run")
    assert len(log) == 3
    state = final_state(tmp_path / "run")
    model = build_model(EXPERIMENT, 3, 1, seed=0)
    model.load_state_dict({k.removeprefix("model."): v for k, v in state.items() if k.startswith("model.")})
    assert log[-1]["health"] == asdict(measure_health(model))
    assert log[0]["health"]["spread_r"] != log[1]["health"]["spread_r"]
    assert {record["health"]["channels"] for record in log} == {42}


@pytest.fixture
def dead_by_epoch(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Makes trainings whose network has so many dead scales at the end of each epoch, and before the first."""

    def make(*dead: int, before: int = 0) -> None:
        counts = iter((before, *dead))

        def measure(model: torch.nn.Module) -> Health:
            model = copy.deepcopy(model)
            dying(model, next(counts))
            return measure_health(model)

        for module in ("preparing", "loop"):
            monkeypatch.setattr(f"counterpoint.training.{module}.measure_health", measure)

    return make


def test_the_watcher_is_warned_once_when_many_channels_are_lost(
    tmp_path: Path, dead_by_epoch: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    dead_by_epoch(2, 4, 4)  # of 42
    heard = Heard()
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    (warning,) = heard.warnings
    assert warning.startswith("small, epoch 2: 9.5 % of the network's channels (4 of 42) are switched off")
    assert "In a new run try warmup_steps=5," in warning
    logged = warning.removeprefix("small, epoch 2: ")
    assert [record.get("warnings") for record in epochs(tmp_path / "run")] == [None, [logged], None]
    assert capsys.readouterr() == ("", ""), "the library does not print"


def test_a_healthy_training_warns_of_nothing(tmp_path: Path, dead_by_epoch: Callable[..., None]) -> None:
    dead_by_epoch(0, 1, 2)
    heard = Heard()
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    assert heard.warnings == []
    assert not any("warnings" in record for record in epochs(tmp_path / "run"))


def test_scales_that_start_at_zero_were_not_lost(tmp_path: Path, dead_by_epoch: Callable[..., None]) -> None:
    dead_by_epoch(14, 15, 31, before=14)
    heard = Heard()
    train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    (warning,) = heard.warnings
    assert warning.startswith("small, epoch 3: 73.8 % of the network's channels (31 of 42) are switched off")


def test_scales_that_start_at_zero_were_not_lost_in_an_interrupted_run_either(
    tmp_path: Path, dead_by_epoch: Callable[..., None]
) -> None:
    dead_by_epoch(14, 15, 31, before=14)
    heard, stops = Heard(), iter([False, True])
    for finished in (False, True):
        ended = train(
            EXPERIMENT,
            tmp_path / "run",
            small_data(),
            options=ON_CPU,
            watcher=heard,
            should_stop=lambda: next(stops, False),
        )
        assert ended == finished
    (warning,) = heard.warnings
    assert warning.startswith("small, epoch 3: 73.8 % of the network's channels (31 of 42) are switched off")


def test_a_resumed_run_is_not_warned_again(tmp_path: Path, dead_by_epoch: Callable[..., None]) -> None:
    dead_by_epoch(4, 5, 9)
    heard = Heard()
    after_an_epoch = iter([False] * 5 + [True])
    assert not train(
        EXPERIMENT,
        tmp_path / "run",
        small_data(),
        options=ON_CPU,
        watcher=heard,
        should_stop=lambda: next(after_an_epoch),
    )
    assert len(heard.warnings) == 1
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, watcher=heard)
    epochs_warned = [warning.split(":")[0] for warning in heard.warnings]
    assert epochs_warned == ["small, epoch 1", "small, epoch 3"], "in the third twice as many are lost"


def test_an_older_log_goes_on_with_health(tmp_path: Path) -> None:
    asked = iter([False] * 4 + [True])
    assert not train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU, should_stop=lambda: next(asked))
    log = tmp_path / "run" / "log.jsonl"
    records = [json.loads(line) for line in log.read_text().splitlines()]
    assert sum("health" in record for record in records) == 2, "before the first step, and after the first epoch"
    log.write_text("".join(json.dumps({k: v for k, v in r.items() if k != "health"}) + "\n" for r in records))
    assert train(EXPERIMENT, tmp_path / "run", small_data(), options=ON_CPU)
    assert ["health" in record for record in epochs(tmp_path / "run")] == [False, True, True]


def test_the_run_records_what_it_was_made_with(tmp_path: Path) -> None:
    train(EXPERIMENT, tmp_path / "run", small_data(), seed=5, options=ON_CPU)
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["seed"] == 5
    assert record["experiment"]["epochs"] == 3
    assert record["environment"]["versions"]["torch"] == torch.__version__
    assert load_run(tmp_path / "run").experiment == EXPERIMENT
