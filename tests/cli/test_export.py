"""`counterpoint export` as a user meets it."""

import re
from pathlib import Path

import pytest

from counterpoint.export import run
from counterpoint.runs.folder import Run
from tests.cli.conftest import Call
from tests.made_runs import copied


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_file_and_its_card(short_run: Run, call: Call) -> None:
    ended = call("export", short_run.folder)
    assert (ended.status, ended.err) == (0, "")
    assert re.fullmatch(
        r"largest difference from PyTorch: \d\.\de-\d\d, on 16 test images of digits and 12 made ones "
        r"recalibration: none written: model\.onnx \(\d\.\d MB\) and model\.onnx\.md",
        ended.out,
    )
    assert Path("model.onnx").stat().st_size > 10_000
    assert "was measured" in Path("model.onnx.md").read_text(encoding="utf-8")


def test_a_confidence_to_be_sure_from(short_run: Run, call: Call) -> None:
    assert call("export", short_run.folder, "--out", "a.pt2", "--not-sure-below", "90%").status == 0
    assert "below a confidence of 0.9" in Path("a.pt2.md").read_text(encoding="utf-8")


def test_wrong_arguments_are_named(short_run: Run, call: Call, tmp_path: Path) -> None:
    folder = short_run.folder
    for arguments, words in {
        (folder, "--out", "model.pb"): "'model.pb' is no name for an exported model; give a file that ends in",
        (folder, "--model", "timm/x"): ", not timm/x",
        (folder, "--not-sure-below", "threshold"): "has no threshold for its present figures",
        (folder, "--not-sure-below", "7"): "(--not-sure-below) is 7; it must be a confidence such as 0.9",
        (tmp_path,): "is not a run folder",
    }.items():
        ended = call("export", *arguments)
        assert ended.status == 2
        assert words in ended.err
    assert not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_to_is_named_before_the_work(
    short_run: Run, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "trace", lambda *_: pytest.fail("the network was traced first"))
    Path("notes.txt").touch()
    Path("folder.onnx").mkdir()
    Path("card.pt2.md").mkdir()
    for out, words in {
        "notes.txt/model.onnx": "notes.txt is a file, but a folder is needed there; give another path",
        "notes.txt/a/b/model.pt2": "notes.txt is a file, but a folder is needed there; give another path",
        "folder.onnx": "folder.onnx is a folder; give a file name, such as folder.onnx/model.onnx",
        "card.pt2": "the model card would replace card.pt2.md, which counterpoint did not write",
        "/dev/null/model.onnx": "/dev/null is a file, but a folder is needed there",
    }.items():
        ended = call("export", short_run.folder, "--out", out)
        assert ended.status == 2
        assert words in ended.err
    assert sorted(path.name for path in Path().iterdir()) == ["card.pt2.md", "folder.onnx", "notes.txt"]


def test_a_folder_that_does_not_exist_is_made(short_run: Run, call: Call) -> None:
    assert call("export", short_run.folder, "--out", "new/folder/model.pt2").status == 0
    assert sorted(path.name for path in Path("new/folder").iterdir()) == ["model.pt2", "model.pt2.md"]


def test_an_unfinished_run_is_named(short_run: Run, call: Call, tmp_path: Path) -> None:
    unfinished = copied(short_run, tmp_path / "unfinished")
    for checkpoint in (unfinished.folder / "checkpoints").iterdir():
        checkpoint.unlink()
    ended = call("export", unfinished.folder)
    assert ended.status == 2
    assert "unfinished is not finished: 0 of" in ended.err
