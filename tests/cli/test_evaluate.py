"""`counterpoint evaluate` as a user meets it, on runs with made-up logits."""

import json
import sys
from collections.abc import Callable

import pytest

from counterpoint.cli import main
from counterpoint.runs.folder import Run

MakeRun = Callable[..., Run]


def test_evaluate_prints_all_that_was_asked_for(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, twin = make_run(seed=1), make_run("twin", seed=2, train_on="split")

    def evaluate(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["counterpoint", "evaluate", *map(str, arguments), "--recompute"])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 0
        return " ".join(capsys.readouterr().out.split())  # titles are wrapped

    printed = evaluate(twin.folder, "--recalibrate")
    assert "clean: cross-fitted on two seeded halves" in printed
    printed = evaluate(run.folder, "--temperatures-from", twin.folder, "--against", twin.folder)
    assert "The members differ" in printed
    assert "temperature of the twin run digits/quickstart, seed 2" in printed
    assert "this run − digits/quickstart, seed 2 (twin)" in printed
    results = json.loads((run.folder / "results.json").read_text())
    assert f"--against {twin.folder} --recompute" in results["evaluation"]["command"]
    assert results["recalibrated"]["fitted_on"]["run"] == "digits/quickstart, seed 2"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--recompute", "--cell-images", "5"], "--recompute takes the saved logits as they are"),
        (["--recompute", "--precision", "bf16"], "--recompute takes the saved logits as they are"),
        (["--precision", "bf61"], "unknown precision 'bf61'"),
        (["--against", "{run}"], "cannot be compared with itself"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_contradicts_itself_is_refused(
    make_run: MakeRun,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    folder = str(make_run(seed=1).folder)
    given = [argument.format(run=folder) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["counterpoint", "evaluate", folder, *given])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_stop_says_how_to_go_on(
    make_run: MakeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("counterpoint.evaluation.pipeline.evaluate_run", interrupted)
    monkeypatch.setattr(sys, "argv", ["counterpoint", "evaluate", str(make_run(seed=1).folder)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert "stopped; the same command goes on from there" in capsys.readouterr().out
