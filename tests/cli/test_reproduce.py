"""`counterpoint reproduce` as a user meets it, on tiny rows."""

import os
import sys
from pathlib import Path

import pytest

import counterpoint.data
import counterpoint.reproduction.campaign
from counterpoint.cli import main
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.experiments.schedules import find_schedule
from counterpoint.reproduction.rows import RowRun, write_result
from tests.cli.conftest import Call
from tests.made_rows import row_results

pytestmark = pytest.mark.usefixtures("tiny_rows")


def fail_to_train(*_: object, **__: object) -> bool:
    pytest.fail("it trained again")


def reproduce(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: object) -> str:
    monkeypatch.setattr(sys, "argv", ["counterpoint", "reproduce", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "160")
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    return capsys.readouterr().out


def test_the_command(
    rows_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    here = ("table2", "--schedule", "smoke", "--rows", "cifar100/single", "--data", rows_root, "--device", "cpu")
    shown = reproduce(capsys, monkeypatch, *here)
    assert "not run" in shown
    assert "1 of 1 results missing: cifar100/single/smoke-0; --run trains or continues them" in shown
    assert "no results: the folder results does not exist" in shown
    assert "written" not in shown
    assert not list(tmp_path.iterdir())
    parts = ("--export-parts", "parts", "--part-mib", 1)
    shown = reproduce(capsys, monkeypatch, *here, "--run", *parts)
    assert "n = 1, " in shown
    assert "exported to parts: cifar100/single/smoke-0" in shown
    assert "written: docs/reproduction.md" in shown
    assert "[cifar100/single/smoke-0]" in (tmp_path / "docs" / "reproduction.md").read_text()
    assert (tmp_path / "results" / "cifar100" / "single" / "smoke-0.json").exists()
    monkeypatch.setattr(counterpoint.reproduction.campaign, "train", fail_to_train)
    shown = reproduce(capsys, monkeypatch, *here, "--out", "elsewhere", "--import-parts", "parts", "--page", "page.md")
    assert "imported from parts: cifar100/single/smoke-0" in shown
    assert "n = 1, " in shown
    assert "written: page.md" in shown
    assert "no folder" not in shown
    assert (tmp_path / "elsewhere" / "cifar100" / "single" / "smoke-0" / "run.json").exists()
    assert (tmp_path / "page.md").exists()


def test_what_is_finished_needs_no_place_to_write(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = RowRun("cifar100/single", find_schedule("paper"), 0)
    write_result(tmp_path / "results", run, row_results(run))
    finished = ("reproduce", "table2", "--rows", "cifar100/single", "--device", "cpu", "--run")
    assert call(*finished).status == 0
    monkeypatch.setattr(os, "access", lambda _, mode, **__: not mode & os.W_OK)  # a folder that cannot be written to
    before = Path("docs/reproduction.md").stat()
    assert call(*finished).status == 0
    assert Path("docs/reproduction.md").stat().st_ino == before.st_ino, "the page was not written again"
    for more in (("--page", "new.md"), ("--seeds", "1"), ("--import-parts", "parts"), ("--export-parts", "parts")):
        status, _, err = call(*finished, *more)
        assert (status, "cannot be written (Permission denied)" in err) == (2, True), more
    Path("docs/reproduction.md").write_text("an earlier page")
    assert "docs cannot be written (Permission denied)" in call(*finished).err


def test_a_row_that_fails_is_told_at_the_end_below_the_tables(
    rows_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "runs" / "cifar100" / "single" / "smoke-0"
    folder.mkdir(parents=True)
    (folder / "notes.txt").touch()
    here = ["table2", "--schedule", "smoke", "--rows", "cifar100/single", "--data", str(rows_root), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["counterpoint", "reproduce", *here, "--run"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    shown = capsys.readouterr()
    assert "1 of 1 results missing" in shown.out
    assert shown.err.startswith("error: cifar100/single/smoke-0 failed: ")
    assert "smoke-0 is not empty and holds no run" in shown.err


def test_a_result_that_does_not_count_is_named(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = RowRun("cifar100/single", find_schedule("paper"), 0)
    written = write_result(tmp_path / "results", run, row_results(run))
    written.rename(written.with_name("paper-1.json"))
    ended = call("reproduce", "table2", "--rows", "cifar100/single", "--seeds", "1,2")
    assert ended.status == 0
    assert "2 of 2 results missing" in ended.out
    assert "results/cifar100/single/paper-1.json is of other settings or of another seed, and does not c" in ended.out
    assert "paper-2.json" not in ended.out
    ended = call("reproduce", "table2", "--rows", "cifar100/single", "--seeds", "1", "--run", "--device", "cpu")
    assert ended.status == 1
    assert (ended.out + ended.err).count("is of other settings") == 2, "when it is met, and below the tables"


def test_a_damaged_result_is_named_below_the_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    monkeypatch.chdir(tmp_path)
    for seed, content in ((0, b"\xff\x00"), (3, b'{"schema": 2, "experiment": 7}')):
        file = tmp_path / "results" / "cifar100" / "single" / f"smoke-{seed}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    ended = call(
        "reproduce", "table2", "--schedule", "smoke", "--rows", "single", "--page", "page.md", "--seeds", "0,1"
    )
    assert ended.status == 1
    assert ended.out.count("damaged") == 2, "both in the row's line, which a terminal folds"
    assert "3 of 4 results missing" in ended.out, "one of them is damaged"
    assert "written: page.md" in ended.out
    first, second = ended.err.removeprefix("error: ").split(" error: ")
    assert first.startswith("results/cifar100/single/smoke-0.json is damaged or is not JSON")
    assert first.endswith("; restore it, or move it away and run the row again")
    assert second.startswith("results/cifar100/single/smoke-3.json is damaged or incomplete: ")


def test_a_data_set_that_is_not_there_is_refused_before_the_first_training(
    rows_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_there(_: Path) -> DataSet:
        raise InputError("cifar100 is not there")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(counterpoint.data.DATASETS, "cifar100", not_there)
    here = ["--schedule", "smoke", "--data", str(rows_root), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", ["counterpoint", "reproduce", "table2", "--rows", "single", "--run", *here])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "cifar100 is not there" in capsys.readouterr().err
    assert not list(tmp_path.iterdir()), "the row on CIFAR-10 comes first, and was not begun"
