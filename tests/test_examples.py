"""The examples run as their first lines say, in small."""

import re
import subprocess
import sys
from pathlib import Path

from counterpoint.records.files import read_evaluated

EXAMPLES = Path(__file__).parents[1] / "examples"
PREDICTIONS = (EXAMPLES.parent / "docs" / "predictions.md").read_text(encoding="utf-8")


def run(name: str, *arguments: str, folder: Path | None = None) -> str:
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=folder).stdout


def errors(output: str) -> dict[tuple[str, str], float]:
    found = re.findall(r"^(\w[\w ]*?) +(\d+)% of the \w+ \w+: error +([\d.]+)%", output, re.MULTILINE)
    return {(name, shift): float(error) for name, shift, error in found}


def test_a_table_is_learned_by_all_three() -> None:
    found = errors(run("table.py", "--epochs", "6"))
    assert set(found) == {(n, s) for n in ("single", "ensemble", "diverse ensemble") for s in ("0", "50")}
    assert all(error < 15 for (_, shift), error in found.items() if shift == "0")


def test_a_text_model_converts_wholly_and_learns() -> None:
    output = run("text.py", "--epochs", "2", "--most", "250")
    assert "converted  13 Linear: 13 of 13 weight layers" in output
    found = errors(output)
    assert len(found) == 6
    assert found["single", "0"] < 65  # guessing has 75


def test_two_classifiers_of_scikit_learn_are_compared_in_15_lines(tmp_path: Path) -> None:
    code = (EXAMPLES / "anybody.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    run("anybody.py", folder=tmp_path)
    forest, logistic = (read_evaluated(tmp_path / "runs" / name) for name in ("forest", "logistic"))
    for found in (forest, logistic):
        assert found.results.clean.ensemble.error < 0.1
        assert found.results.validated_on is not None
    assert forest.compared is not None
    assert forest.compared.against[0].experiment == "logistic"
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "forest − logistic" in page
    assert "trained elsewhere" in page


def test_the_page_on_predictions_shows_the_example() -> None:
    assert f"```python\n{(EXAMPLES / 'anybody.py').read_text(encoding='utf-8')}```\n" in PREDICTIONS
