"""`counterpoint predict` as a user meets it."""

import io
import json
import sys
from pathlib import Path

import pytest
from PIL import Image

from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.cli.conftest import Call
from tests.small import QUICK, few_digits


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(QUICK, folder, few_digits(40), seed=3, options=Options(device="cpu"))
    return load_run(folder)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, size in (("small.png", (16, 20)), ("wide.jpg", (90, 40))):
        Image.new("RGB", size, "white").save(folder / name)
    return folder


def test_a_table_for_people(run: Run, pictures: Path, call: Call) -> None:
    ended = call("predict", run.folder, pictures, "--device", "cpu")
    assert (ended.status, ended.err) == (0, "")
    assert "picture class confidence members" in ended.out
    assert "small.png" in ended.out
    assert "wide.jpg" in ended.out
    assert ended.out.endswith("recalibration: none")
    assert "sure" in call("predict", run.folder, pictures, "--not-sure-below", "1", "--device", "cpu").out


def test_lines_for_programs_from_a_list(run: Run, pictures: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [pictures / "wide.jpg", pictures / "gone.png", pictures / "small.png"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{name}\n" for name in names)))
    ended = call("predict", run.folder, "-", "--format", "jsonl", "--device", "cpu")
    assert ended.status == 1, "a file could not be read"
    decoder, text, lines = json.JSONDecoder(), ended.out, []
    while text:
        line, end = decoder.raw_decode(text)
        lines.append(line)
        text = text[end:].strip()
    assert [line["path"] for line in lines] == [str(name) for name in names]
    assert lines[1]["error"] == "cannot be read (No such file or directory)"
    assert len(lines[0]["members"]) == QUICK.members
    csv = call("predict", run.folder, pictures, "--format", "csv", "--device", "cpu")
    assert csv.out.startswith("path,class,confidence,agree,sure,recalibration,member_1_class")


def test_wrong_arguments_are_named(run: Run, pictures: Path, call: Call) -> None:
    assert (
        "unknown --format 'xml' (known: table, jsonl, csv)"
        in call("predict", run.folder, pictures, "--format", "xml").err
    )
    assert "holds no run" in call("predict", pictures, pictures).err
    assert "has no threshold that counts" in call("predict", run.folder, pictures, "--not-sure-below", "threshold").err
    assert "and not timm/x" in call("predict", run.folder, pictures, "--model", "timm/x").err
