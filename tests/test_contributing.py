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


@pytest.mark.parametrize(
    ("diff", "lines"), [example[1:] for example in EXAMPLES], ids=[title for title, *_ in EXAMPLES]
)
def test_the_diff_applies_and_the_lines_run(tmp_path: Path, diff: str, lines: str) -> None:
    def run(code: str) -> subprocess.CompletedProcess[str]:
        environment = os.environ | {"PYTHONPATH": str(tmp_path / "src")}
        return subprocess.run(
            [sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )

    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    assert run(lines).returncode != 0, "without the diff they cannot"
    subprocess.run(["git", "apply", "-"], input=diff, cwd=tmp_path, text=True, check=True)
    done = run(lines)
    assert done.returncode == 0, done.stderr
