"""results.json as a whole, against plain computations from the same logits."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterpoint.corrupt import CORRUPTIONS, SEVERITIES
from counterpoint.evaluation.corrupted_set import CELLS
from counterpoint.metrics import (
    disagreement,
    ece,
    image_scores,
    independent_disagreement,
    mean_pairwise_kl,
    noise_floor,
)
from counterpoint.report.results import load_results
from counterpoint.runs.folder import Run

MakeRun = Callable[..., Run]
Evaluate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    return make_run(members=3, train_on="split")


@pytest.fixture(scope="module")
def results(run: Run, evaluated: Evaluate) -> dict[str, Any]:
    return evaluated(run, temperatures_from=run)


def probs(run: Run, name: str) -> np.ndarray:
    exponentials = np.exp(np.load(run.folder / "logits" / f"{name}.npy").astype(np.float64))
    return exponentials / exponentials.sum(axis=2, keepdims=True)


def labels(run: Run, name: str = "cell-labels") -> np.ndarray:
    array: np.ndarray = np.load(run.folder / "logits" / f"{name}.npy")
    return array


def test_the_report_accepts_everything(run: Run, results: dict[str, Any]) -> None:
    assert load_results(run.folder) == results


def test_the_same_logits_give_the_same_file(run: Run, results: dict[str, Any], evaluated: Evaluate) -> None:
    again = evaluated(run, temperatures_from=run)
    assert json.dumps(again | {"evaluation": None}) == json.dumps(results | {"evaluation": None})


def test_aggregates_between_members_are_means_over_cells(run: Run, results: dict[str, Any]) -> None:
    aggregates = results["corrupted"]["aggregates"]
    cells = [probs(run, f"{name}-{severity}") for name, severity in CELLS]
    assert aggregates["disagreement"] == pytest.approx(np.mean([disagreement(cell) for cell in cells]))
    assert aggregates["pairwise_kl"] == pytest.approx(np.mean([mean_pairwise_kl(cell) for cell in cells]))


def test_the_ensemble_has_floors_on_every_set(run: Run, results: dict[str, Any]) -> None:
    assert len(results["clean"]["honest"]["members"]) == 3
    cell = results["corrupted"]["cells"]["fog"][4]
    assert cell["honest"]["members"] == [], "too dear for 75 cells"
    scores = image_scores(probs(run, "fog-5").mean(0), labels(run))
    expected = noise_floor(scores.confidence, scores.correct)
    assert cell["honest"]["ensemble"]["ece_width15"]["floor"] == pytest.approx(expected.ece_mean)
    excess = ece(scores.confidence, scores.correct) - expected.ece_mean
    assert cell["honest"]["ensemble"]["ece_width15"]["excess"] == pytest.approx(excess)
    all_cells = [cell for cells in results["corrupted"]["cells"].values() for cell in cells]
    by_cell = np.mean([cell["honest"]["ensemble"]["ece_rms_mass15"]["floor"] for cell in all_cells])
    aggregates = results["corrupted"]["aggregates"]["ensemble"]
    assert aggregates["by-cell"]["ece_rms_mass15_floor"] == pytest.approx(by_cell)


def test_risk_coverage_pools_the_corruptions_of_a_severity(run: Run, results: dict[str, Any]) -> None:
    assert len(results["clean"]["risk_coverage"]["risk"]) == 80, "a point an image where there are fewer than 100"
    assert len(results["corrupted"]["risk_coverage"]) == len(SEVERITIES)
    for severity, curve in zip(SEVERITIES, results["corrupted"]["risk_coverage"], strict=True):
        ensemble = np.concatenate([probs(run, f"{name}-{severity}").mean(0) for name in CORRUPTIONS])
        wrong = ensemble.argmax(1) != np.tile(labels(run), len(CORRUPTIONS))
        sure_first = wrong[np.argsort(-ensemble.max(1))]
        half = curve["coverage"].index(0.5)
        assert curve["risk"][half] == pytest.approx(sure_first[: len(wrong) // 2].mean(), abs=0.01)
        assert curve["risk"][-1] == pytest.approx(wrong.mean())


def test_chance_is_counted_with_the_classes(make_run: MakeRun, evaluated: Evaluate) -> None:
    results = evaluated(make_run(members=2))
    error = np.mean([member["error"] for member in results["clean"]["members"]])
    assert results["collapse"]["clean"]["independent_disagreement"] == pytest.approx(independent_disagreement(error, 3))


def test_the_run_is_described_by_its_whole_log(make_run: MakeRun, evaluated: Evaluate) -> None:
    run = make_run()
    here, there = ({"device": name, "commit": name[0]} for name in ("here", "there"))
    records: list[dict[str, Any]] = [
        {"event": "started", "step": 0, "environment": here},
        {"event": "epoch", "time": "Monday", "seconds": 10.0},
        {"event": "started", "step": 7, "path": "fast", "environment": there},
        {"event": "started", "step": 9, "engine": "compiled", "environment": there},
        {"event": "epoch", "time": "Tuesday", "seconds": 25.0},
    ]
    (run.folder / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    described = evaluated(run)["run"]
    assert (described["train_seconds"], described["finished"]) == (25.0, "Tuesday")
    assert described["segments"] == [
        {"step": 0, "engine": None, "device": "here", "commit": "h"},
        {"step": 7, "engine": "fast", "device": "there", "commit": "t"},
        {"step": 9, "engine": "compiled", "device": "there", "commit": "t"},
    ]


def test_a_single_network_has_nothing_to_differ(make_run: MakeRun, evaluated: Evaluate) -> None:
    results = evaluated(make_run(members=1))
    assert results["collapse"] is None
    assert results["clean"]["pairwise_kl"] is None
    assert results["corrupted"]["aggregates"]["disagreement"] is None
    assert results["clean"]["honest"]["members"] == [results["clean"]["honest"]["ensemble"]]


def test_the_health_of_the_log_is_kept(make_run: MakeRun, evaluated: Evaluate) -> None:
    run = make_run()
    assert evaluated(run)["health"] is None, "an older log has none"
    health = {"channels": 100, "below_eps": 30, "dead_scales": 1, "spread_r": 0.5, "spread_s": 0.25}
    record = {"event": "epoch", "epoch": 1, "step": 5, "time": "Monday", "seconds": 10.0, "health": health}
    (run.folder / "log.jsonl").write_text(json.dumps(record) + "\n")
    kept = evaluated(run)["health"]
    assert kept["epochs"] == [{"epoch": 1, "below_eps": 30, "dead_scales": 1, "spread_r": 0.5, "spread_s": 0.25}]
    assert "--set decay_rs=false" in kept["warnings"][0]
