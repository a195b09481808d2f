"""Rows run from start to end on a tiny network and tiny images: what is missing, what is done, what was interrupted."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

import counterpoint.data
import counterpoint.reproduction.campaign
from counterpoint.cli import main
from counterpoint.config import Experiment
from counterpoint.data import load
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import make_corrupted_set
from counterpoint.experiments import EXPERIMENTS, config_hash, schedules
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.campaign import run_missing
from counterpoint.reproduction.rows import Folders, RowRun, read_result
from counterpoint.reproduction.tables import table_lines
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.seeding import Stream
from counterpoint.training.loop import Options, train

ROWS = ("cifar10/be+sd", "cifar100/single", "cifar100/single-am-bern-0.875/test")
FEW = replace(find_schedule("smoke"), images=7)
RUNS = [RowRun(row, FEW, 0) for row in ROWS]


def tiny_data(name: str) -> DataSet:
    numbers = torch.arange(60)
    pixels = Stream(0, name).integers(numbers, 3 * 32 * 32, 256).view(60, 3, 32, 32).to(torch.uint8)
    images = ImageSet(pixels, numbers % 4, ("a", "b", "c", "d"))
    return DataSet(name, images, images.select(torch.arange(12)))


def loader(name: str, _: Path) -> DataSet:
    return tiny_data(name)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    for name in ("cifar10", "cifar100"):
        make_corrupted_set(tiny_data(name), folder, workers=1)
    return folder


@pytest.fixture(autouse=True)
def tiny_rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every row with a network of width 2 on tiny images, and a smoke schedule of five steps, not of a whole epoch."""
    for name, row in EXPERIMENTS.items():
        monkeypatch.setitem(EXPERIMENTS, name, replace(row, model="resnet", width=2, batch_size=9))
    for dataset in ("cifar10", "cifar100"):
        monkeypatch.setitem(counterpoint.data.DATASETS, dataset, partial(loader, dataset))
    monkeypatch.setattr(schedules, "SMOKE_STEPS", 5)
    counterpoint.data._load_once.cache_clear()
    yield
    counterpoint.data._load_once.cache_clear()


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "runs", tmp_path / "results")


def saved(folders: Folders, run: RowRun) -> Any:
    return json.loads((folders.results / f"{run.place}.json").read_text())


def fail_to_train(*_: object, **__: object) -> bool:
    pytest.fail("it trained again")


def test_what_is_missing_is_run_once(root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_missing(RUNS, folders, root=root, device="cpu")
    for run in RUNS:
        result = saved(folders, run)
        assert result == read_result(folders.results, run)
        assert (result["schedule"], result["run"]["seed"]) == ("smoke", 0)
        assert result["hash"] == config_hash(run.experiment)
        assert result["config"]["steps"] == 5
        assert result["evaluated_on"]["part"] == ("test" if run.row.endswith("/test") else "validation")
        assert (result["evaluated_on"]["images"], result["corrupted"]["images"]) == (7, 7)
        assert {"command", "commit", "versions", "device", "train_seconds"} <= result["run"].keys()
        log = (folders.runs / run.place / "log.jsonl").read_text().splitlines()
        assert json.loads(log[-1])["step"] == 5
    monkeypatch.setattr(counterpoint.reproduction.campaign, "train", fail_to_train)
    assert run_missing(RUNS, folders, root=root, device="cpu")


def test_a_data_set_is_loaded_once(root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(name: str) -> DataSet:
        loaded.append(name)
        return tiny_data(name)

    monkeypatch.setitem(counterpoint.data.DATASETS, "cifar100", lambda _: load("cifar100"))
    assert run_missing(RUNS[1:], folders, root=root, device="cpu")
    assert loaded == ["cifar100"]


def test_what_was_interrupted_goes_on(root: Path, folders: Folders) -> None:
    run, steps = RUNS[1], 0

    def after_three_steps() -> bool:
        nonlocal steps
        steps += 1
        return steps > 3

    assert not run_missing([run], folders, root=root, device="cpu", should_stop=after_three_steps)
    assert read_result(folders.results, run) is None
    assert table_lines([run.row], FEW, folders)[0].status == "seed 0: epoch 0 of 1"
    assert run_missing([run], folders, root=root, device="cpu")
    events = [json.loads(line) for line in (folders.runs / run.place / "log.jsonl").read_text().splitlines()]
    assert [(e["event"], e["step"]) for e in events] == [("started", 0), ("started", 3), ("epoch", 5)]
    assert table_lines([run.row], FEW, folders)[0].status.startswith("n = 1, 0.")


@pytest.mark.parametrize(("steps", "logged"), [(1, [1]), (8, [5, 8])])
def test_the_last_step_may_lie_within_an_epoch(root: Path, tmp_path: Path, steps: int, logged: list[int]) -> None:
    experiment = replace(RUNS[1].experiment, steps=steps)
    at_the_end = iter([False] * (steps - 1))  # then the answer would be to stop, if it were asked again
    assert train(
        experiment,
        tmp_path / "run",
        load("cifar100", root),
        options=Options("cpu"),
        should_stop=lambda: next(at_the_end, True),
    )
    run = load_run(tmp_path / "run")
    assert [record["step"] for record in run.read_log() if record["event"] == "epoch"] == logged
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    assert checkpoint.step == steps


def test_a_row_is_trained_as_it_says_in_the_time_that_is_left(
    root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    minutes = 0.0

    def train_for_a_minute(experiment: Experiment, folder: Path, *_: object, **how: Any) -> bool:
        nonlocal minutes
        minutes += 1
        asked.append((experiment, folder, how["seed"], how["options"]))
        return True

    monkeypatch.setattr(counterpoint.reproduction.campaign, "time", SimpleNamespace(monotonic=lambda: 60 * minutes))
    monkeypatch.setattr(counterpoint.reproduction.campaign, "train", train_for_a_minute)
    monkeypatch.setattr(counterpoint.reproduction.campaign, "_evaluate", lambda *_: None)
    wanted = [RowRun(ROWS[1], schedule, seed) for schedule in (FEW, find_schedule("short")) for seed in (0, 3)]
    assert not run_missing(wanted, folders, root=root, device="cpu", max_minutes=3)
    assert asked == [
        (wanted[0].experiment, folders.runs / ROWS[1] / "smoke-0", 0, Options("cpu", "eager", max_minutes=3)),
        (wanted[1].experiment, folders.runs / ROWS[1] / "smoke-3", 3, Options("cpu", "eager", max_minutes=2)),
        (wanted[2].experiment, folders.runs / ROWS[1] / "short-0", 0, Options("cpu", "auto", max_minutes=1)),
    ]


def test_no_row_is_begun_when_the_time_is_over(root: Path, folders: Folders) -> None:
    assert not run_missing(RUNS, folders, root=root, device="cpu", max_minutes=0)
    assert not folders.runs.exists()


def test_another_run_in_its_place_is_left_alone(root: Path, folders: Folders) -> None:
    run = RUNS[1]
    assert run_missing([run], folders, root=root, device="cpu")
    before = saved(folders, run)
    EXPERIMENTS[run.row] = replace(EXPERIMENTS[run.row], weight_decay=0.0)
    assert read_result(folders.results, run) is None
    with pytest.raises(ValueError, match=r"holds another run \(weight_decay: 0.0005 → 0.0"):
        run_missing([run], folders, root=root, device="cpu")
    assert saved(folders, run) == before


def reproduce(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["counterpoint", "reproduce", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capsys.readouterr().out


def test_the_command(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    here = ("table2", "--schedule", "smoke", "--rows", "cifar100/single", "--data", root, "--device", "cpu")
    shown = reproduce(capsys, monkeypatch, *here)
    assert "not run" in shown
    assert "1 of 1 results are missing; --run runs them" in shown
    assert "no results: there is no folder results" in shown
    assert "written" not in shown
    assert not list(tmp_path.iterdir())
    parts = ("--export-parts", "parts", "--part-mib", 1)
    shown = reproduce(capsys, monkeypatch, *here, "--run", *parts)
    assert "n = 1, " in shown
    assert "written: docs/reproduction.md" in shown
    assert "[cifar100/single/smoke-0]" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert (tmp_path / "results" / "cifar100" / "single" / "smoke-0.json").exists()
    monkeypatch.setattr(counterpoint.reproduction.campaign, "train", fail_to_train)
    shown = reproduce(capsys, monkeypatch, *here, "--out", "elsewhere", "--import-parts", "parts", "--page", "page.md")
    assert "n = 1, " in shown
    assert "written: page.md" in shown
    assert "no folder" not in shown
    assert (tmp_path / "elsewhere" / "cifar100" / "single" / "smoke-0" / "run.json").exists()
    assert (tmp_path / "page.md").exists()


def test_a_data_set_that_is_not_there_is_refused_before_the_first_training(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_there(_: Path) -> DataSet:
        raise InputError("cifar100 is not there")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(counterpoint.data.DATASETS, "cifar100", not_there)
    arguments = ("table2", "--rows", "single", "--schedule", "smoke", "--run", "--data", str(root), "--device", "cpu")
    monkeypatch.setattr(sys, "argv", ["counterpoint", "reproduce", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "cifar100 is not there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "the row on CIFAR-10 comes first, and was not begun"
