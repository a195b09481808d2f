"""Rows run from start to end on a tiny network and tiny images: what is missing, what is done, what was interrupted."""

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import counterpoint.data
import counterpoint.reproduction.campaign
from counterpoint.config import Experiment, to_dict
from counterpoint.data import load
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.experiments import EXPERIMENTS, config_hash
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.campaign import RowsFailedError, run_missing
from counterpoint.reproduction.rows import Folders, RowRun, keep_small, read_result
from counterpoint.reproduction.tables import table_lines
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.runs.transfer import export_runs, import_runs
from counterpoint.training.loop import Options, train
from tests.heard import Heard
from tests.made_rows import row_data

pytestmark = pytest.mark.usefixtures("tiny_rows")

ROWS = ("cifar10/be+sd", "cifar100/single", "cifar100/single-am-bern-0.875/test")
FEW = replace(find_schedule("smoke"), images=7)
RUNS = [RowRun(row, FEW, 0) for row in ROWS]


def saved(folders: Folders, run: RowRun) -> Any:
    return json.loads((folders.results / f"{run.place}.json").read_text())


def fail_to_train(*_: object, **__: object) -> bool:
    pytest.fail("it trained again")


def test_what_is_missing_is_run_once(rows_root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_missing(RUNS, folders, root=rows_root, device="cpu")
    for run in RUNS:
        result, kept = saved(folders, run), read_result(folders.results, run)
        assert kept is not None
        assert kept == keep_small(kept)
        assert (kept.experiment, kept.seed, kept.config) == (run.row, 0, to_dict(run.experiment))
        assert (result["schedule"], result["run"]["seed"]) == ("smoke", 0)
        assert result["hash"] == config_hash(run.experiment)
        assert result["config"]["steps"] == 5
        assert kept.evaluated_on.part == ("test" if run.row.endswith("/test") else "validation")
        assert kept.corrupted is not None
        assert (kept.evaluated_on.images, kept.corrupted.images) == (7, 7)
        assert {"command", "commit", "versions", "device", "train_seconds"} <= result["run"].keys()
        log = (folders.runs / run.place / "log.jsonl").read_text().splitlines()
        assert json.loads(log[-1])["step"] == 5
    monkeypatch.setattr(counterpoint.reproduction.campaign, "train", fail_to_train)
    assert run_missing(RUNS, folders, root=rows_root, device="cpu")


def test_rows_can_be_compared_when_their_runs_are_gone(rows_root: Path, folders: Folders) -> None:
    pair = [RUNS[1], replace(RUNS[1], seed=1)]
    assert run_missing(pair, folders, root=rows_root, device="cpu")
    (expected,) = compare_run(folders.runs / pair[0].place, [folders.runs / pair[1].place]).against
    shutil.rmtree(folders.runs)
    rows = [folders.results / f"{run.place}.json" for run in pair]
    (found,) = compare_run(rows[0], rows[1:]).against
    assert (found.experiment, found.seed, found.run) == (ROWS[1], 1, "smoke-1")
    assert found.clean is not None
    assert expected.clean is not None
    assert found.clean.ece_width15_debiased == expected.clean.ece_width15_debiased
    assert found.corrupted is not None
    assert expected.corrupted is not None
    assert found.corrupted.mean.error == expected.corrupted.mean.error
    assert vars(found.corrupted.mean.nll) == pytest.approx(vars(expected.corrupted.mean.nll), abs=1e-4)


def test_a_row_without_its_scores_is_not_kept(
    rows_root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it would count as finished, and never get them."""
    run = RUNS[1]
    with monkeypatch.context() as patch:
        patch.setattr("counterpoint.storage.files.os.replace", refuse_npz)
        with pytest.raises(InputError, match=r"the disk is full: .*smoke-0\.npz cannot be written"):
            run_missing([run], folders, root=rows_root, device="cpu")
    assert not any(path.is_file() for path in folders.results.rglob("*"))
    assert run_missing([run], folders, root=rows_root, device="cpu")
    assert {path.name for path in (folders.results / run.row).iterdir()} == {"smoke-0.json", "smoke-0.npz"}


def refuse_npz(source: Path, target: Path) -> None:
    if target.name == "smoke-0.npz":
        raise OSError(errno.ENOSPC, "No space left on device")
    source.rename(target)


def test_a_data_set_is_loaded_once(rows_root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = []

    def load(name: str) -> DataSet:
        loaded.append(name)
        return row_data(name)

    monkeypatch.setitem(counterpoint.data.DATASETS, "cifar100", lambda _: load("cifar100"))
    assert run_missing(RUNS[1:], folders, root=rows_root, device="cpu")
    assert loaded == ["cifar100"]


def test_what_was_interrupted_goes_on(rows_root: Path, folders: Folders) -> None:
    run, steps = RUNS[1], 0

    def after_three_steps() -> bool:
        nonlocal steps
        steps += 1
        return steps > 3

    assert not run_missing([run], folders, root=rows_root, device="cpu", should_stop=after_three_steps)
    assert read_result(folders.results, run) is None
    assert table_lines([run.row], FEW, folders)[0].status == "seed 0: epoch 0 of 1"
    assert run_missing([run], folders, root=rows_root, device="cpu")
    events = [json.loads(line) for line in (folders.runs / run.place / "log.jsonl").read_text().splitlines()]
    assert [(e["event"], e["step"]) for e in events] == [("started", 0), ("started", 3), ("epoch", 5)]
    assert table_lines([run.row], FEW, folders)[0].status.startswith("n = 1, 0.")


def test_an_evaluation_that_was_interrupted_goes_on_elsewhere(
    rows_root: Path, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, there = RUNS[1], Folders(tmp_path / "there", tmp_path / "results there")

    def after_three_cells() -> bool:
        return len(list((folders.runs / run.place / "logits").glob("*-[1-5].npy"))) == 3

    assert not run_missing([run], folders, root=rows_root, device="cpu", should_stop=after_three_cells)
    assert read_result(folders.results, run) is None
    export_runs(folders.runs, [run.place], tmp_path / "parts", part_mib=1)
    import_runs(tmp_path / "parts", there.runs)
    carried = {path: path.stat().st_mtime_ns for path in (there.runs / run.place / "logits").glob("*-[1-5].npy")}
    assert len(carried) == 3
    monkeypatch.setattr("counterpoint.training.loop.update", fail_to_train)
    for place in (there, folders):
        assert run_missing([run], place, root=rows_root, device="cpu")
    assert {path: path.stat().st_mtime_ns for path in carried} == carried, "they were not computed again"
    ours, theirs = read_result(folders.results, run), read_result(there.results, run)
    assert ours is not None
    assert theirs is not None
    assert (ours.clean, ours.corrupted) == (theirs.clean, theirs.corrupted)


@pytest.mark.parametrize(("steps", "logged"), [(1, [1]), (8, [5, 8])])
def test_the_last_step_may_lie_within_an_epoch(rows_root: Path, tmp_path: Path, steps: int, logged: list[int]) -> None:
    experiment = replace(RUNS[1].experiment, steps=steps)
    at_the_end = iter([False] * (steps - 1))  # then the answer would be to stop, if it were asked again
    assert train(
        experiment,
        tmp_path / "run",
        load("cifar100", rows_root),
        options=Options("cpu"),
        should_stop=lambda: next(at_the_end, True),
    )
    run = load_run(tmp_path / "run")
    assert [record["step"] for record in run.read_log() if record["event"] == "epoch"] == logged
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    assert checkpoint.step == steps


def test_a_row_is_trained_as_it_says_in_the_time_that_is_left(
    rows_root: Path, folders: Folders, monkeypatch: pytest.MonkeyPatch
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
    for name in ("load_run", "evaluate_run", "keep_row", "minutes"):  # no evaluation
        monkeypatch.setattr(counterpoint.reproduction.campaign, name, lambda *_, **__: 0.0)
    wanted = [RowRun(ROWS[1], schedule, seed) for schedule in (FEW, find_schedule("short")) for seed in (0, 3)]
    assert not run_missing(wanted, folders, root=rows_root, device="cpu", max_minutes=3)
    assert asked == [
        (wanted[0].experiment, folders.runs / ROWS[1] / "smoke-0", 0, Options("cpu", "eager", max_minutes=3)),
        (wanted[1].experiment, folders.runs / ROWS[1] / "smoke-3", 3, Options("cpu", "eager", max_minutes=2)),
        (wanted[2].experiment, folders.runs / ROWS[1] / "short-0", 0, Options("cpu", "auto", max_minutes=1)),
    ]


def test_a_row_that_fails_does_not_stop_the_others(rows_root: Path, folders: Folders) -> None:
    damaged, fine = RUNS[0], RUNS[1]
    (folders.runs / damaged.place).mkdir(parents=True)
    (folders.runs / damaged.place / "run.json").write_text("{")
    heard = Heard()
    with pytest.raises(RowsFailedError, match=r"^cifar10/be\+sd/smoke-0 failed: .*run.json is damaged") as failed:
        run_missing([damaged, fine], folders, root=rows_root, device="cpu", watcher=heard)
    assert read_result(folders.results, fine) is not None
    assert heard.warnings == [str(failed.value)], "said when it happened, too"


def test_a_result_of_other_settings_is_kept_and_does_not_stop_the_others(rows_root: Path, folders: Folders) -> None:
    other, fine = RUNS[0], RUNS[1]
    assert run_missing([fine], folders, root=rows_root, device="cpu")
    file = folders.results / f"{other.place}.json"
    file.parent.mkdir(parents=True)
    content = (folders.results / f"{fine.place}.json").read_bytes()
    file.write_bytes(content)
    (folders.results / f"{fine.place}.json").unlink()
    with pytest.raises(
        RowsFailedError, match=r"^cifar10/be\+sd/smoke-0 was not run: .*smoke-0.json is of other settings"
    ):
        run_missing([other, fine], folders, root=rows_root, device="cpu")
    assert file.read_bytes() == content
    assert not (folders.runs / other.place).exists()
    assert read_result(folders.results, fine) is not None


def test_a_damaged_result_is_kept_and_does_not_stop_the_others(rows_root: Path, folders: Folders) -> None:
    damaged, fine = RUNS[0], RUNS[1]
    file = folders.results / f"{damaged.place}.json"
    file.parent.mkdir(parents=True)
    file.write_text("{")
    heard = Heard()
    with pytest.raises(
        RowsFailedError, match=r"^cifar10/be\+sd/smoke-0 was not run: .*smoke-0.json is damaged"
    ) as failed:
        run_missing([damaged, fine], folders, root=rows_root, device="cpu", watcher=heard)
    assert read_result(folders.results, fine) is not None
    assert heard.warnings == [str(failed.value)]
    assert file.read_text() == "{"
    assert not (folders.runs / damaged.place).exists()


def test_a_device_that_is_not_there_is_no_rows_fault(rows_root: Path, folders: Folders) -> None:
    with pytest.raises(InputError) as refused:
        run_missing(RUNS, folders, root=rows_root, device="tpu")
    assert not isinstance(refused.value, RowsFailedError)
    assert not folders.runs.exists()


def test_no_row_is_begun_when_the_time_is_over(rows_root: Path, folders: Folders) -> None:
    assert not run_missing(RUNS, folders, root=rows_root, device="cpu", max_minutes=0)
    assert not folders.runs.exists()


def test_another_run_in_its_place_is_left_alone(rows_root: Path, folders: Folders) -> None:
    run = RUNS[1]
    assert run_missing([run], folders, root=rows_root, device="cpu")
    before = saved(folders, run)
    EXPERIMENTS[run.row] = replace(EXPERIMENTS[run.row], weight_decay=0.0)
    assert read_result(folders.results, run) is None
    with pytest.raises(RowsFailedError, match="is of other settings or of another seed, and does not count"):
        run_missing([run], folders, root=rows_root, device="cpu")
    assert saved(folders, run) == before
    (folders.results / f"{run.place}.json").unlink()
    with pytest.raises(RowsFailedError, match=r"holds another run \(weight_decay: 0.0005 → 0.0"):
        run_missing([run], folders, root=rows_root, device="cpu")


def test_the_watcher_hears_of_each_row(rows_root: Path, folders: Folders) -> None:
    run, heard = RUNS[1], Heard()
    assert run_missing([run], folders, root=rows_root, device="cpu", watcher=heard)
    first, last = heard.notes
    assert first == f"1 of 1: {run.place.as_posix()}"
    assert last.startswith(f"{run.place.as_posix()}: ")
    assert heard.trainings[-1].experiment == run.row
    assert heard.counts[-1] == (f"evaluating {run.row}", 76, 76)
