"""The lines in docs/export.md run as they stand."""

import re
from pathlib import Path

import pytest

from counterpoint.export import export_run
from counterpoint.recalibration.choose import NONE
from counterpoint.serving.correction import Correction
from counterpoint.serving.predict import Prediction, Predictor
from tests.export.conftest import MakeTrained
from tests.export.photograph import write_photograph

DOCS = Path(__file__).parents[2] / "docs" / "export.md"


@pytest.mark.parametrize("dataset", ["digits", "cifar10"])
def test_the_lines_say_what_predict_says(
    trained: MakeTrained,
    dataset: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = trained("shared BatchNorm", dataset)
    export_run(run, tmp_path / "model.onnx")
    write_photograph(tmp_path / "photo.png", run.description.channels)
    monkeypatch.chdir(tmp_path)
    (lines,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(lines, "export.md", "exec"), {})
    name, confidence, *members = re.split(r"[\s\[\]]+|members:", capsys.readouterr().out.strip())
    (answer,) = Predictor(run, Correction(NONE, "none"), device="cpu").predict([tmp_path / "photo.png"])
    assert isinstance(answer, Prediction)
    assert name == answer.ensemble.name
    assert float(confidence) == pytest.approx(answer.ensemble.confidence, abs=1e-4)
    assert [float(text) for text in members if text] == pytest.approx(
        [member.confidence for member in answer.members], abs=1e-4
    )
