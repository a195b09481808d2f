"""The demo from start to end, made small: everything it promises is in what it leaves behind."""

from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.cli.demo.run import _evaluate, run_demo
from counterpoint.errors import InputError
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.records.files import read_evaluated
from counterpoint.report import load_runs, verdict
from counterpoint.runs.folder import Run
from tests.heard import Heard
from tests.small import few_digits


def test_the_demo_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("counterpoint.cli.demo.run.load", lambda *_: few_digits(20))
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: few_digits(20))
    tiny = [replace(e, epochs=2, width=4, batch_size=64) for e in QUICKSTART]
    monkeypatch.setattr("counterpoint.cli.demo.run.QUICKSTART", tiny)
    monkeypatch.setattr("counterpoint.cli.demo.run._CELL_IMAGES", 10)
    report = run_demo(tmp_path / "demo", device="cpu")
    assert "digits/quickstart" in report.read_text()
    ensemble, single = (read_evaluated(tmp_path / "demo" / name) for name in ("digits-quickstart", "digits-single"))
    assert ensemble.compared is not None
    assert [comparison.experiment for comparison in ensemble.compared.against] == ["digits/single"]
    assert ensemble.results.collapse is not None
    assert ensemble.results.health is not None
    assert [epoch.epoch for epoch in ensemble.results.health.epochs] == [1, 2]
    assert report.read_text().count("lost channels by epoch") == 2, "of the ensemble and of the single network"
    for evaluated in (ensemble, single):
        assert evaluated.recalibrated is not None, "both get a temperature, so that the comparison is fair"
        assert evaluated.recalibrated.fitted_on.images.images == 449, "held out from its training images"
        assert evaluated.recalibrated.fitted_on.shift is not None, "the extra corruptions too"
        assert evaluated.recalibrated.choice is not None
        assert evaluated.results.evaluated_on.part == "test"
    assert ensemble.notes == single.notes == ()
    out = capsys.readouterr().out
    for sentence in verdict(load_runs([tmp_path / "demo" / name for name in ("digits-quickstart", "digits-single")])):
        assert " ".join(sentence.split()) in " ".join(out.split())
    printed = [line.split() for line in out.splitlines()]
    for name, evaluated in (("ensemble", ensemble), ("network", single)):
        (shown,) = [line for line in printed if line[:2] == [name, "clean"]]
        figures = evaluated.results.clean.ensemble
        assert shown[2:4] == [f"{100 * figures.error:.2f}", f"{100 * figures.ece_width15:.2f}"]


def test_without_a_temperature_the_demo_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the private step alone: a whole demo that gets every held-out image right would have to train for long."""

    def recalibrate_run(*_: Run, **__: object) -> None:
        raise InputError("every image is predicted right")

    monkeypatch.setattr("counterpoint.cli.demo.run.evaluate_run", lambda *_, **__: None)
    monkeypatch.setattr("counterpoint.cli.demo.run.recalibrate_run", recalibrate_run)
    heard = Heard()
    _evaluate(Run(Path("single"), QUICKSTART[1], {}), "cpu", heard)
    assert heard.notes == ["digits/single is not recalibrated: every image is predicted right"]
