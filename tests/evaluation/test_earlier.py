"""What earlier commands added to a run's results stays while its logits stay, and does not go unsaid."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.runs.folder import Run
from counterpoint.watching import SILENT, Watcher
from tests.heard import Heard

MakeRun = Callable[..., Run]


@pytest.fixture
def others(make_run: MakeRun) -> list[Path]:
    """Two evaluated runs to compare with."""
    runs = [make_run(f"other{seed}", seed=seed, train_on="split") for seed in (1, 2)]
    for run in runs:
        recompute(run)
    return [run.folder for run in runs]


@pytest.fixture
def run(make_run: MakeRun, others: list[Path]) -> Run:
    """A run with temperatures and two comparisons."""
    made = make_run(seed=3, train_on="split")
    recompute(made, recalibrate=True, against=others)
    return made


def recompute(run: Run, watcher: Watcher = SILENT, **options: Any) -> dict[str, Any]:
    return evaluate_run(run, device="cpu", recompute=True, watcher=watcher, **options)


def notes_of(run: Run, **options: Any) -> list[str]:
    """What a person is told when the figures are computed again."""
    heard = Heard()
    recompute(run, heard, **options)
    return heard.notes


def on_disk(run: Run, name: str) -> Any:
    return json.loads((run.folder / name).read_text())


def other_logits(run: Run, name: str) -> None:
    path = run.folder / "logits" / f"{name}.npy"
    np.save(path, np.load(path)[::-1] * 1.01)


def test_what_was_added_stays(run: Run, others: list[Path]) -> None:
    before, temperatures = on_disk(run, "results.json"), on_disk(run, "temperatures.json")
    heard = Heard()
    after = recompute(run, heard)
    assert after == on_disk(run, "results.json")
    assert after | {"evaluation": None} == before | {"evaluation": None}
    assert on_disk(run, "temperatures.json") == temperatures
    assert len(recompute(run, heard, recalibrate=True)["against"]) == 2
    again = recompute(run, heard, against=others[1:])
    assert [entry["run"] for entry in again["against"]] == ["other2"], "the help says that comparisons are replaced"
    assert again["recalibrated"] == before["recalibrated"]
    assert heard.notes == []


@pytest.mark.parametrize("changed", ["clean", "fog-3"])
def test_what_belongs_to_other_logits_is_dropped_and_named(run: Run, changed: str) -> None:
    other_logits(run, changed)
    heard = Heard()
    after = recompute(run, heard)
    assert not {"against", "recalibrated"} & set(after)
    assert after == on_disk(run, "results.json")
    assert not (run.folder / "temperatures.json").exists()
    assert heard.notes == [
        "dropped the temperatures and the comparisons with other1, other2, which belong to other logits or another "
        f"version; `counterpoint evaluate {run.folder} --recompute --recalibrate --against OTHER` makes them again"
    ]
    assert notes_of(run) == [], "it is said once"


def test_what_is_asked_for_again_is_not_called_dropped(run: Run, others: list[Path]) -> None:
    other_logits(run, "clean")
    assert notes_of(run, recalibrate=True, against=others[:1]) == []
    other_logits(run, "clean")
    (note,) = notes_of(run, recalibrate=True)
    assert "dropped the comparisons with other1, which" in note


def test_figures_of_another_version_are_dropped(run: Run) -> None:
    results = on_disk(run, "results.json")
    (run.folder / "results.json").write_text(json.dumps(results | {"counterpoint": "0.0.1"}))
    (note,) = notes_of(run)
    assert "dropped the temperatures and the comparisons" in note
    assert "against" not in on_disk(run, "results.json")


def test_temperatures_of_a_twin_are_named_as_such(make_run: MakeRun) -> None:
    run, twin = make_run(seed=5), make_run("twin", seed=7, train_on="split")
    recompute(run, twin=twin)
    assert recompute(run)["recalibrated"]["fitted_on"]["run"] == "digits/quickstart, seed 7"
    other_logits(run, "clean")
    (note,) = notes_of(run)
    assert f"evaluate {run.folder} --recompute --temperatures-from TWIN` makes them" in note


@pytest.mark.parametrize("content", ['{"sch', "[]", '{"schema": 99, "against": []}'])
def test_results_that_cannot_be_understood_are_made_anew(run: Run, content: str) -> None:
    (run.folder / "results.json").write_text(content)
    assert "against" not in recompute(run)
    assert not (run.folder / "temperatures.json").exists()
