"""Commands that are suggested can be pasted into a shell, and help shows flags as flags."""

import re
import shlex
import sys
from pathlib import Path

import pytest

import counterpoint
from counterpoint.cli import main
from counterpoint.cli.app import app
from counterpoint.config import Experiment
from counterpoint.data import load
from counterpoint.errors import InputError
from counterpoint.records.files import results_file
from counterpoint.runs.folder import load_run
from counterpoint.storage.files import read_json, write_json
from counterpoint.training.loop import Options, train
from tests.cli.conftest import Call

SOURCES = sorted(Path(counterpoint.__file__).parent.rglob("*.py"))
NAMES = [name for command in app.registered_commands if (name := getattr(command.callback, "__name__", ""))]


def test_every_path_in_a_suggested_command_is_quoted() -> None:
    """Read from the source: what stands in braces after `counterpoint, up to the end of the command."""
    found = [
        braces
        for file in SOURCES
        for command in suggested(file.read_text())
        for braces in re.findall(r"{(.*?)}", command)
    ]
    assert len(found) > 15
    fixed = {
        "command",
        "name",
        "again",
        "others",
        "rest",
        "place",
        "command_name()",
        "VALIDATION_EXTRA.name",
        "sets",
        "package",
    }
    assert {braces for braces in found if not braces.startswith("quoted(")} <= fixed, "no path without quoted()"


def suggested(source: str) -> list[str]:
    return re.findall(r"`(counterpoint [^`]*)`", source.replace('"\n            f"', ""))


def test_a_folder_with_blanks_and_worse_is_one_word(tmp_path: Path, call: Call) -> None:
    folder = tmp_path / "my run; rm -rf $HOME"
    assert call("train", "digits/single", "--out", folder, "--set", "steps=1", "--set", "batch_size=8").status == 0
    with pytest.raises(InputError, match=r"has no results\.json") as said:
        results_file(folder)
    (command,) = suggested(str(said.value))
    assert shlex.split(command) == ["counterpoint", "evaluate", str(folder)]
    assert shlex.split(load_run(folder).evaluate_command) == ["counterpoint", "evaluate", str(folder)]


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of four steps, stopped after the first."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    experiment = Experiment("mine", "digits", model="resnet", width=2, steps=4, batch_size=8)
    assert not train(experiment, folder, load("digits"), options=Options(device="cpu"), should_stop=lambda: True)
    record = read_json(folder / "run.json")
    write_json(folder / "run.json", record | {"command": "counterpoint train mine --out run"})
    return folder


@pytest.mark.parametrize(
    "command",
    [
        "evaluate RUN",
        "evaluate RUN --recompute",
        "recalibrate RUN",
        "threshold RUN --error 1%",
        "predict RUN picture.png",
        "export RUN --out model.onnx",
        "serve RUN",
        "compare RUN RUN",
        "report RUN",
    ],
)
def test_whatever_needs_a_finished_run_names_the_training_to_continue(
    command: str, unfinished: Path, call: Call
) -> None:
    status, _, err = call(*(str(unfinished) if word == "RUN" else word for word in command.split()))
    assert status == 2
    assert err == (
        f"error: {unfinished} is not finished: 1 of 4 steps are done; continue it with "
        "`counterpoint train mine --out run`"
    )


@pytest.mark.parametrize("name", [*NAMES, "bench step", ""])
def test_help_shows_no_value_after_a_flag(name: str, call: Call) -> None:
    shown = call(*name.split(), "--help").out
    assert "--help -h Show this message" in shown
    assert "bool" not in shown.lower()


@pytest.mark.parametrize(("name", "flag"), [("train", "validate"), ("sweep", "evaluate"), ("bench step", "slow")])
def test_help_of_80_columns_cuts_no_word_short(
    name: str, flag: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["counterpoint", *name.split(), "--help"])
    with pytest.raises(SystemExit):
        main()
    shown = capsys.readouterr().out
    assert f"--[no-]{flag} " in shown
    assert not re.search(r"\w…", shown)


def test_a_paragraph_of_help_breaks_only_at_the_width_of_the_terminal(call: Call) -> None:
    assert "If they have no parts at all, they are split into train, val and test." in call("train", "--help").out
