"""benchmarks/row_in_one_go.py, on a CPU with tiny rows: the whole course with an interruption, and other settings."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import row_in_one_go

import counterpoint.data
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.condensed import read_condensed
from counterpoint.experiments.schedules import find_schedule
from counterpoint.records.files import read_record, read_results
from counterpoint.records.progress import epochs_done
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.reproduction.beside_paper import stands_for_row
from counterpoint.reproduction.campaign import run_missing
from counterpoint.reproduction.rows import Folders, RowRun, read_result
from counterpoint.runs.folder import load_run
from tests.tiny_rows_in_one_go import STEPS, make_small

ROOT = Path(__file__).parents[1]
FIRST, SECOND = "cifar10/single", "cifar100/single"
CHANGED = "cifar100-single__decay_batchnorm=false"
PREPARED = "evaluation: compiled"

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="sends a signal to a process")


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "tests.tiny_rows_in_one_go", *map(str, arguments), "--device", "cpu"]


def status_here(folder: Path, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """In this process, for what starts no other."""
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder / "data"))
    monkeypatch.setattr(sys, "argv", ["", *arguments, "--schedule", "smoke", "--out", str(folder / "out")])
    return row_in_one_go.main()


def environment(data: Path) -> dict[str, str]:
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "src", ROOT / "benchmarks")))
    return {**os.environ, "PYTHONPATH": paths, "COUNTERPOINT_DATA": str(data)}


def wait_for(happened: Callable[[], object], process: "subprocess.Popen[bytes]", log: Path) -> None:
    limit = time.monotonic() + 600
    while not happened():
        assert process.poll() is None, log.read_text()
        assert "Traceback" not in log.read_text(), log.read_text()
        assert time.monotonic() < limit, log.read_text()
        time.sleep(0.01)


def starts(out: Path, row: str) -> list[int]:
    """The steps at which the training of a row began or went on."""
    log = load_run(out / "runs" / row / "smoke-0").read_log()
    return [record["step"] for record in log if record["event"] == "started"]


def ended_with(folder: Path, *arguments: str, timeout: float = 900) -> "subprocess.CompletedProcess[str]":
    full = command(*arguments, "--schedule", "smoke", "--out", folder / "out")
    return subprocess.run(
        full, cwd=ROOT, env=environment(folder / "data"), capture_output=True, text=True, timeout=timeout, check=False
    )


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two rows: the data come late, the second training is interrupted, and the same command goes on."""
    folder = tmp_path_factory.mktemp("in one go")
    out, data, log = folder / "out", folder / "data", folder / "log.txt"
    same = command(FIRST, SECOND, "--schedule", "smoke", "--recalibrate", "--out", out)
    results = out / "results"
    with log.open("wb") as lines:
        begun = subprocess.Popen(same, cwd=ROOT, env=environment(data), stdout=lines, stderr=lines)
    wait_for(lambda: PREPARED in log.read_text(), begun, log)
    assert "begins" not in log.read_text(), "it waits for the data"
    data.mkdir()
    wait_for(lambda: epochs_done(out / "runs" / SECOND / "smoke-0"), begun, log)
    begun.send_signal(signal.SIGTERM)
    assert begun.wait(600) == 1
    assert "the same command goes on" in log.read_text()
    assert (results / FIRST / "smoke-0.json").exists(), "the row that was trained is evaluated all the same"
    assert (results / "recalibration" / "cifar10-single-smoke-0.json").exists()
    assert not (results / SECOND).exists()
    assert subprocess.run(same, cwd=ROOT, env=environment(data), check=False).returncode == 0
    return folder


@pytest.fixture(autouse=True)
def rows(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The rows are as tiny here as in the script's processes."""
    make_small(monkeypatch)
    yield
    counterpoint.data._load_once.cache_clear()


@pytest.mark.parametrize("row", [FIRST, SECOND])
def test_the_results_are_those_of_reproduce(course: Path, tmp_path: Path, row: str) -> None:
    run, there = RowRun(row, find_schedule("smoke"), 0), Folders(tmp_path / "runs", tmp_path / "results")
    assert run_missing([run], there, root=course / "data", device="cpu")
    ours, theirs = read_result(course / "out" / "results", run), read_result(there.results, run)
    assert ours is not None
    assert theirs is not None
    assert (ours.clean, ours.corrupted) == (theirs.clean, theirs.corrupted)
    assert ours.corrupted is not None
    scores = [read_condensed(place / row / "smoke-0.npz") for place in (course / "out" / "results", there.results)]
    assert scores[0].made_from == ours.made_from
    assert (scores[0].clean.confidence == scores[1].clean.confidence).all()


@pytest.mark.parametrize("row", [FIRST, SECOND])
def test_each_row_is_recalibrated(course: Path, row: str) -> None:
    file = course / "out" / "results" / "recalibration" / f"{row.replace('/', '-')}-smoke-0.json"
    found = read_record(file, Recalibrated, "")
    assert found.choice is not None
    assert found.fitted_on.shift is not None, "on validation images under shift too"


def test_only_the_interrupted_training_went_on(course: Path) -> None:
    assert starts(course / "out", FIRST) == [0]
    begun, went_on = starts(course / "out", SECOND)
    assert begun == 0 < went_on < STEPS


def test_a_finished_course_does_nothing(
    course: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status_here(course, monkeypatch, FIRST, SECOND, "--recalibrate") == 0
    assert "nothing is missing" in capsys.readouterr().out
    assert starts(course / "out", FIRST) == [0]


def test_a_lost_recalibration_is_made_again_without_a_training(course: Path) -> None:
    file = course / "out" / "results" / "recalibration" / "cifar10-single-smoke-0.json"
    before = read_record(file, Recalibrated, "")
    file.unlink()
    assert ended_with(course, FIRST, SECOND, "--recalibrate").returncode == 0
    assert read_record(file, Recalibrated, "").ways == before.ways
    assert starts(course / "out", FIRST) == [0]


def test_other_settings_have_a_folder_of_their_own_and_compare_with_the_row(course: Path) -> None:
    results, row = course / "out" / "results", RowRun(SECOND, find_schedule("smoke"), 0)
    before = read_result(results, row)
    assert ended_with(course, SECOND, "--set", "decay_batchnorm=false").returncode == 0
    changed = results / CHANGED / "smoke-0.json"
    assert load_run(course / "out" / "runs" / CHANGED / "smoke-0").experiment == replace(
        row.experiment, name=CHANGED, decay_batchnorm=False
    )
    assert read_result(results, row) == before
    assert not stands_for_row(read_results(changed))
    compared = compare_run(changed, [results / SECOND / "smoke-0.json"])
    (found,) = compared.against
    assert (compared.called, found.called) == (f"{CHANGED}, seed 0", f"{SECOND}, seed 0")
    assert found.clean is not None
    assert before is not None
    assert found.clean.nll.difference == pytest.approx(
        read_results(changed).clean.ensemble.nll - before.clean.ensemble.nll, abs=1e-4
    )
    assert found.corrupted is not None


def test_a_row_that_cannot_be_evaluated_does_not_keep_the_others_waiting(course: Path, tmp_path: Path) -> None:
    """The time is over before the second training begins, and the first run is damaged."""
    run = Path("out", "runs", FIRST, "smoke-0")
    shutil.copytree(course / "data", tmp_path / "data")
    shutil.copytree(course / run, tmp_path / run, ignore=shutil.ignore_patterns("logits", "results.json"))
    for checkpoint in (tmp_path / run / "checkpoints").iterdir():
        checkpoint.write_bytes(checkpoint.read_bytes()[:-100])
    ended = ended_with(tmp_path, FIRST, SECOND, "--max-minutes", "0", timeout=300)
    assert ended.returncode == 1
    assert f"{FIRST}/smoke-0 failed: " in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cifar10/singel",), "unknown experiment 'cifar10/singel'"),
        ((FIRST, "--set", "decay_batchnorms=false"), "unknown key 'decay_batchnorms'"),
        ((FIRST, "--set", "decay_batchnorm=true"), "decay_batchnorm=true changes nothing in cifar10/single"),
    ],
)
def test_what_cannot_be_run_is_said_before_anything_begins(
    tmp_path: Path,
    arguments: tuple[str, ...],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert status_here(tmp_path, monkeypatch, *arguments) == 1
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert message in said
    assert not (tmp_path / "out").exists()
