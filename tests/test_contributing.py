"""What CONTRIBUTING.md shows works: each diff applies to the code, and the lines below it run with it."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(
    r"^### Add (.*?)$.*?^```diff\n(.*?)^```$.*?^```python\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE
)


def test_every_extension_has_an_example() -> None:
    assert [title for title, _, _ in EXAMPLES] == [
        "an augmentation",
        "a corruption",
        "a data set",
        "a model",
        "a metric",
        "a section of the report",
    ]


def runs(lines: str) -> bool:
    """In this process, with the code as it is."""
    try:
        exec(lines, {})
    except Exception:
        return False
    return True


@pytest.mark.parametrize(
    ("diff", "lines"), [example[1:] for example in EXAMPLES], ids=[title for title, *_ in EXAMPLES]
)
def test_the_diff_applies_and_the_lines_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, diff: str, lines: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert not runs(lines), "without the diff they cannot"
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(["git", "apply", "-"], input=diff, text=True, check=True)
    environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
    done = subprocess.run(
        [sys.executable, "-c", lines], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
