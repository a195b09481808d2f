"""`counterpoint predict` as a user meets it."""

import io
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from rich.console import Console

from counterpoint.cli import main
from counterpoint.cli.predict import members_in_words
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.policy import MemberPolicy
from counterpoint.recalibration.apply import apply
from counterpoint.records.files import RECALIBRATED, read_evaluated, write_record
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.predict import Opinion, Prediction
from counterpoint.training.loop import Options, train
from tests.cli.conftest import Call
from tests.small import QUICK, few_digits


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for name, size in (("small.png", (16, 20)), ("wide.jpg", (90, 40))):
        Image.new("RGB", size, "white").save(folder / name)
    return folder


def test_a_table_for_people(short_run: Run, pictures: Path, call: Call) -> None:
    ended = call("predict", short_run.folder, pictures, "--device", "cpu")
    assert (ended.status, ended.err) == (0, "")
    assert "picture class confidence members" in ended.out
    assert "small.png" in ended.out
    assert "wide.jpg" in ended.out
    assert ended.out.endswith("recalibration: none")
    assert "sure" in call("predict", short_run.folder, pictures, "--not-sure-below", "1", "--device", "cpu").out


def test_a_table_in_a_file_has_a_line_for_each_picture(
    short_run: Run, pictures: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (pictures / "wide.jpg").rename(pictures / f"{'a long name ' * 8}.jpg")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["counterpoint", "predict", str(short_run.folder), str(pictures)])
    with pytest.raises(SystemExit):
        main()
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[1].startswith(f"{pictures}/{'a long name ' * 8}.jpg ")


def test_a_bar_shows_while_somebody_waits_for_a_long_table(
    short_run: Run, pictures: Path, tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "many").mkdir()
    for number in range(70):
        Image.new("L", (8, 8), number).save(tmp_path / "many" / f"{number}.png")

    def shown(folder: Path, *, on_a_terminal: bool) -> str:
        sent = io.StringIO()
        terminal = Console(file=sent, force_terminal=on_a_terminal, color_system=None, width=400)
        for module in ("counterpoint.cli.predict", "counterpoint.cli.terminal.progress"):
            monkeypatch.setattr(f"{module}.console", terminal)
        assert call("predict", short_run.folder, folder, "--device", "cpu").status == 0
        return sent.getvalue()

    bar, table = shown(tmp_path / "many", on_a_terminal=True), shown(tmp_path / "many", on_a_terminal=False)
    assert "predicting" in bar
    assert "70/70" in bar
    assert bar.endswith(table)
    assert table.startswith("picture ")
    assert "predicting" not in shown(pictures, on_a_terminal=True)


def test_the_likeliest_classes(short_run: Run, pictures: Path, call: Call) -> None:
    options = ("--device", "cpu", "--top")
    few, all_ = (
        objects(call("predict", short_run.folder, pictures, "--format", "jsonl", *options, count).out)
        for count in ("3", "1000")
    )
    for line, whole in zip(few, all_, strict=True):
        assert line["top"] == whole["top"][:3]
        assert line["top"][0] == {"class": line["class"], "confidence": line["confidence"]}
        confidences = [one["confidence"] for one in whole["top"]]
        assert confidences == sorted(confidences, reverse=True)
        assert sum(confidences) == pytest.approx(1)
        assert sorted(one["class"] for one in whole["top"]) == sorted(short_run.description.classes)
    table = call("predict", short_run.folder, pictures, *options, "2")
    second = few[0]["top"][1]
    assert "members next" in table.out
    assert f"{second['class']} {second['confidence']:.1%}" in table.out


@pytest.mark.parametrize("wanted", ["table", "csv"])
def test_a_folder_without_pictures_is_named(short_run: Run, tmp_path: Path, call: Call, wanted: str) -> None:
    (tmp_path / "empty").mkdir()
    ended = call("predict", short_run.folder, tmp_path / "empty", "--format", wanted)
    assert (ended.status, ended.out) == (2, "")
    assert "empty: there are no files to predict; name picture files, or folders that have some" in ended.err


def objects(text: str) -> list[Any]:
    """The JSON objects that were printed, wherever the lines end."""
    decoder, found = json.JSONDecoder(), []
    while text:
        one, end = decoder.raw_decode(text)
        found.append(one)
        text = text[end:].strip()
    return found


def test_lines_for_programs_from_a_list(
    short_run: Run, pictures: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [pictures / "wide.jpg", pictures / "gone.png", pictures / "small.png"]
    monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{name}\n" for name in names)))
    ended = call("predict", short_run.folder, "-", "--format", "jsonl", "--device", "cpu")
    assert ended.status == 1, "a file could not be read"
    lines = objects(ended.out)
    assert [line["path"] for line in lines] == [str(name) for name in names]
    assert lines[1]["error"] == "cannot be read (No such file or directory)"
    assert len(lines[0]["members"]) == QUICK.members
    csv = call("predict", short_run.folder, pictures, "--format", "csv", "--device", "cpu")
    assert csv.out.startswith("path,class,confidence,agree,sure,recalibration,member_1_class")


@pytest.mark.skipif(sys.platform == "win32", reason="has other names of files")
def test_lines_for_programs_are_utf_8_whatever_the_terminal_is(short_run: Run, tmp_path: Path) -> None:
    names = [os.fsencode(tmp_path / "Größe.png"), os.fsencode(tmp_path) + b"/\xff.png"]
    for name in names:
        with open(name, "wb") as file:
            Image.new("L", (8, 8)).save(file, format="PNG")
    command = [sys.executable, "-m", "counterpoint", "predict", str(short_run.folder), *map(os.fsdecode, names)]
    ended = subprocess.run(
        [*command, "--format", "jsonl", "--device", "cpu"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
        timeout=120,
    )
    found = [json.loads(line)["path"] for line in ended.stdout.decode("utf-8").splitlines()]
    assert [os.fsencode(path) for path in found] == names


def test_wrong_arguments_are_named(short_run: Run, pictures: Path, call: Call) -> None:
    assert (
        "unknown --format 'xml' (known: table, jsonl, csv)"
        in call("predict", short_run.folder, pictures, "--format", "xml").err
    )
    assert "is not a run folder" in call("predict", pictures, pictures).err
    assert (
        "has no threshold for its present figures"
        in call("predict", short_run.folder, pictures, "--not-sure-below", "threshold").err
    )
    assert ", not timm/x" in call("predict", short_run.folder, pictures, "--model", "timm/x").err


def test_a_threshold_brings_the_recalibration_that_it_was_found_with(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From training to predictions: the promise is for the confidences of its own parameters, and of no others."""
    data = replace(few_digits(60), train=few_digits(60).train.first(400))
    experiment = replace(
        QUICK, train_on="split", batch_size=20, policy=MemberPolicy(flip=False), init_std=0.1, epochs=15
    )
    folder = tmp_path / "run"
    assert train(experiment, folder, data, seed=3, options=Options(device="cpu"))
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: data)
    evaluate_run(load_run(folder), tmp_path, suites=(), device="cpu")
    assert call("recalibrate", folder).status == 0
    assert call("threshold", folder, "--error", "20%").status == 0
    known = read_evaluated(folder)
    assert known.thresholded is not None
    assert known.recalibrated is not None
    found = known.thresholded
    others = known.recalibrated.ways[found.recalibration_name].recalibration
    assert found.recalibration_name != "none"
    assert found.recalibration != others

    for i, image_CHW in enumerate(data.test.images_NCHW):
        Image.fromarray(image_CHW[0].numpy()).save(tmp_path / f"{i:02}.png")
    pictures = sorted(tmp_path.glob("*.png"))
    arguments = ("predict", folder, *pictures, "--format", "jsonl", "--device", "cpu")
    ended = call(*arguments, "--not-sure-below", "threshold")
    assert (ended.status, ended.err) == (0, "")
    lines = objects(ended.out)
    members = fold_members(load_model(load_run(folder), torch.device("cpu"))[0], torch.device("cpu"))
    logits_MNK = member_logits(members, data.test.images_NCHW).astype(np.float64)
    expected_N, others_N = (apply(one, logits_MNK).ensemble_NK.max(axis=1) for one in (found.recalibration, others))
    assert [line["confidence"] for line in lines] == pytest.approx(expected_N, abs=1e-5)
    assert [line["confidence"] for line in lines] != pytest.approx(others_N, abs=1e-4)
    assert {line["recalibration"] for line in lines} == {found.recalibration_name}
    assert [line["sure"] for line in lines] == list(expected_N >= found.promise.chosen.threshold)
    assert {line["sure"] for line in lines} == {True, False}
    plain = objects(call(*arguments).out)
    assert not any("sure" in line for line in plain)
    assert {line["recalibration"] for line in plain} <= set(known.recalibrated.ways)

    stale = replace(known.recalibrated, made_from=replace(known.recalibrated.made_from, precision="another"))
    write_record(folder / RECALIBRATED, stale)
    ended = call(*arguments)
    assert ended.err.startswith(f"warning: left out: {folder / RECALIBRATED} was made from other logits than results")
    assert {line["recalibration"] for line in objects(ended.out)} == {"none"}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["cat"], "one network"),
        (["cat", "cat"], "both agree"),
        (["cat", "dog"], "1 says cat, 1 says dog"),
        (["cat", "cat", "cat"], "all 3 agree"),
    ],
)
def test_what_the_members_say(names: list[str], said: str) -> None:
    members = tuple(Opinion(name, 0.9) for name in names)
    assert members_in_words(Prediction("a.png", members[0], members, None)) == said


def test_closed_standard_input_is_named(short_run: Run, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", None)
    ended = call("predict", short_run.folder, "-")
    assert ended.status == 2
    assert "- reads paths from standard input, which is closed; name the picture files instead" in ended.err
