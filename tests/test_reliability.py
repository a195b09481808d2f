"""docs/reliability.md names tests, and each of them exists."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8"))


def test_the_page_names_a_test_in_every_row() -> None:
    rows = [
        line
        for line in (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and line.count("|") == 4 and not line.startswith(("| fault |", "| input |"))
    ]
    assert len(rows) > 40
    assert [row for row in rows if not re.search(r"`tests/[\w/]+\.py::\w+` \|$", row)] == []


@pytest.mark.parametrize(("file", "name"), NAMED, ids=lambda part: part)
def test_a_named_test_exists(file: str, name: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
