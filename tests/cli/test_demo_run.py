"""The demo from start to end, made small: everything it promises is in what it leaves behind."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from counterpoint.cli.demo_run import _evaluate_with_temperatures, run_demo
from counterpoint.cli.progress import TerminalWatcher
from counterpoint.errors import InputError
from counterpoint.experiments.quickstart import QUICKSTART
from counterpoint.runs.folder import Run
from tests.small import few_digits


def test_the_demo_has_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    monkeypatch.setattr("counterpoint.cli.demo_run.load", lambda *_: few_digits(20))
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load", lambda *_: few_digits(20))
    tiny = [replace(e, epochs=2, width=4, batch_size=64) for e in QUICKSTART]
    monkeypatch.setattr("counterpoint.cli.demo_run.QUICKSTART", tiny)
    report = run_demo(tmp_path / "demo", device="cpu")
    assert "digits/quickstart" in report.read_text()
    ensemble, single = (
        json.loads((tmp_path / "demo" / name / "results.json").read_text())
        for name in ("digits-quickstart", "digits-single")
    )
    assert ensemble["against"][0]["experiment"] == "digits/single"
    assert ensemble["collapse"]["verdict"]
    assert [epoch["epoch"] for epoch in ensemble["health"]["epochs"]] == [1, 2]
    assert report.read_text().count("lost channels by epoch") == 2, "of the ensemble and of the single network"
    assert single["recalibrated"]["fitted_on"]["images"] == 449, "held out from the twin's training images"
    assert single["evaluated_on"]["part"] == "test"
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    for name, results in (("ensemble", ensemble), ("network", single)):
        (shown,) = [line for line in printed if line[:2] == [name, "clean"]]
        assert shown[2:4] == [f"{100 * results['clean']['ensemble'][key]:.2f}" for key in ("error", "ece_width15")]


def test_without_a_temperature_the_single_network_is_still_evaluated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the private step alone: a whole demo whose twin gets every image right would have to train for long."""
    evaluated: list[Run] = []

    def evaluate(run: Run, *, twin: Run | None = None, **_: Any) -> None:
        if twin is not None:
            raise InputError("every image is predicted right")
        evaluated.append(run)

    monkeypatch.setattr("counterpoint.cli.demo_run.evaluate_run", evaluate)
    run, twin = Run(Path("single"), QUICKSTART[1], {}), Run(Path("twin"), QUICKSTART[1], {})
    _evaluate_with_temperatures(run, twin, "cpu", TerminalWatcher())
    assert evaluated == [run]
    assert "not recalibrated: every image is predicted right" in capsys.readouterr().out
