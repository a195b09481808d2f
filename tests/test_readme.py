"""What the README shows works."""

import re
from pathlib import Path

import pytest

from counterpoint.cli.app import app
from counterpoint.report import load_runs

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


@pytest.mark.filterwarnings("ignore:.*non-writable")
def test_the_library_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    exec(compile(example, "README.md", "exec"), {})
    *report, last = capsys.readouterr().out.splitlines()
    assert report[0].startswith("ResNet as an ensemble of 4 members")
    assert 0 <= float(last) <= 1


def test_every_command_is_named_and_every_named_command_is_there() -> None:
    known = {command.callback.__name__ for command in app.registered_commands if command.callback}
    (block,) = re.findall(r"## Use it\n\n```\n(.*?)```", README, re.DOTALL)
    named = set(re.findall(r"^counterpoint (\w+)", block, re.MULTILINE))
    assert named <= known
    assert known - named == {"demo"}, "make demo runs it"


def test_every_committed_result_can_be_reported() -> None:
    committed = sorted((Path(__file__).parents[1] / "results").rglob("results.json"))
    assert committed
    for path in committed:
        (run,) = load_runs([path])
        assert run.results.trained.command.startswith("counterpoint train")
        assert run.results.trained.commit
        assert "/tmp" not in path.read_text(encoding="utf-8")


def test_every_file_and_link_is_there() -> None:
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target


def test_the_map_has_every_room() -> None:
    root = Path(__file__).parents[1]
    rooms = (root / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## The rooms")[2]
    listed = {
        name.rstrip("/")
        for line in rooms.splitlines()
        if line.count("|") > 3
        for name in re.findall(r"`([\w/]+)`", line.split("|")[2])
    }
    package = root / "src" / "counterpoint"
    modules = {p.stem for p in package.glob("*.py")} | {p.name for p in package.iterdir() if p.is_dir()}
    assert modules - {"__init__", "__main__", "__pycache__"} == listed
