"""The map of the rooms and the committed results are what the code says. tests/docs tests the pages themselves."""

import re
from pathlib import Path

from counterpoint.report import load_runs


def test_every_committed_result_can_be_reported() -> None:
    committed = sorted((Path(__file__).parents[1] / "results").rglob("results.json"))
    assert committed
    for path in committed:
        (run,) = load_runs([path])
        assert run.results.trained.command.startswith("counterpoint train")
        assert run.results.trained.commit
        assert "/tmp" not in path.read_text(encoding="utf-8")


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
