"""The examples run as their first lines say, in small."""

import re
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def run(name: str, *arguments: str) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def errors(output: str) -> dict[tuple[str, str], float]:
    found = re.findall(r"^(\w[\w ]*?) +(\d+)% of the \w+ \w+: error +([\d.]+)%", output, re.MULTILINE)
    return {(name, shift): float(error) for name, shift, error in found}


def test_a_table_is_learned_by_all_three() -> None:
    found = errors(run("table.py", "--epochs", "6"))
    assert set(found) == {(n, s) for n in ("single", "ensemble", "diverse ensemble") for s in ("0", "50")}
    assert all(error < 15 for (_, shift), error in found.items() if shift == "0")


def test_a_text_model_converts_wholly_and_learns() -> None:
    output = run("text.py", "--epochs", "3", "--most", "250")
    assert "converted  13 Linear: 13 of 13 weight layers" in output
    found = errors(output)
    assert len(found) == 6
    assert found["single", "0"] < 65  # guessing has 75
