"""Temperatures of a run: what they are fitted on, what they change, and the twins that are refused."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import CELLS
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.temperatures import recalibrated_results, validation_run
from counterpoint.metrics import (
    ImageScores,
    aggregate,
    apply_temperature,
    cross_fitted_probabilities,
    fit_temperature,
    image_scores,
)
from counterpoint.metrics.recalibrate import Kind
from counterpoint.metrics.scores import join_scores
from counterpoint.metrics.summary import figures
from counterpoint.runs.folder import Run

MakeRun = Callable[..., Run]
KINDS: tuple[Kind, ...] = ("before", "after", "per-member")
PLAIN: dict[str, Any] = {
    "clean": {"members": ["clean 1", "clean 2"]},
    "corrupted": {"aggregates": {"members": ["-C 1", "-C 2"]}},
}


def saved(run: Run, name: str) -> np.ndarray:
    array: np.ndarray = np.load(run.folder / "logits" / f"{name}.npy")
    return array


def recalibrate(run: Run, source: Run) -> dict[str, Any]:
    return recalibrated_results(run, source, PLAIN)


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_run_is_cross_fitted_on_its_validation_images(make_run: MakeRun, kind: Kind) -> None:
    run = make_run(train_on="split")
    found = recalibrate(run, validation_run(run, None))
    assert found["fitted_on"] == {"dataset": "digits", "part": "validation", "images": 80, "run": "this run"}
    assert found["clean_how"] == "cross-fitted on two seeded halves of the validation images"
    assert found["corrupted_how"] == "temperature of all 80 validation images"
    logits, labels = saved(run, "clean"), saved(run, "labels")
    expected = figures(image_scores(cross_fitted_probabilities(logits, labels, kind), labels))
    assert found["ways"][kind]["clean"]["ensemble"] == pytest.approx(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_scaled_with_the_temperature_of_all_validation_images(make_run: MakeRun, kind: Kind) -> None:
    run = make_run(train_on="split")
    way = recalibrate(run, run)["ways"][kind]
    temperatures = fit_temperature(saved(run, "clean"), saved(run, "labels"), kind)
    assert way["temperature"] == pytest.approx(list(temperatures) if kind == "per-member" else temperatures[0])
    names = sorted({path.stem[:-2] for path in (run.folder / "logits").glob("*-[1-5].npy")})
    grid = {
        name: [
            image_scores(apply_temperature(saved(run, f"{name}-{i}"), temperatures, kind), saved(run, "cell-labels"))
            for i in range(1, 6)
        ]
        for name in names
    }
    assert len(names) == 15
    for name, expected in aggregate(grid).items():
        assert way["corrupted"]["ensemble"][name] == pytest.approx(expected)


def test_members_are_scaled_before_averaging_only(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    ways = recalibrate(run, run)["ways"]
    assert ways["after"]["clean"]["members"] == PLAIN["clean"]["members"], "as they were"
    assert ways["after"]["corrupted"]["members"] == ["-C 1", "-C 2"]
    logits, labels = saved(run, "clean"), saved(run, "labels")
    first_half, second_half = np.array_split(np.random.default_rng(0).permutation(80), 2)
    for kind, shared in (("before", True), ("per-member", False)):
        for i in range(2):
            fitted_with = logits if shared else logits[i : i + 1]
            halves = []
            for fitted, applied in ((first_half, second_half), (second_half, first_half)):
                (temperature,) = fit_temperature(fitted_with[:, fitted], labels[fitted], "before")
                exponentials = np.exp(logits[i, applied].astype(np.float64) / temperature)
                probs = exponentials / exponentials.sum(axis=1, keepdims=True)
                halves.append(image_scores(probs, labels[applied]))
            assert ways[kind]["clean"]["members"][i] == pytest.approx(figures(join_scores(halves)))


@pytest.mark.parametrize("kind", ["before", "per-member"])
def test_members_are_scaled_in_the_cells_too(make_run: MakeRun, kind: Kind) -> None:
    run = make_run(train_on="split")
    found = recalibrate(run, run)["ways"][kind]["corrupted"]["members"]
    temperatures = fit_temperature(saved(run, "clean"), saved(run, "labels"), kind)
    for i, temperature in enumerate(temperatures * (2 // len(temperatures))):
        grid: dict[str, list[ImageScores]] = {name: [] for name in CORRUPTIONS}
        for name, severity in CELLS:
            logits_1NK = saved(run, f"{name}-{severity}")[i : i + 1]
            probs_NK = apply_temperature(logits_1NK, (temperature,), "before")
            grid[name].append(image_scores(probs_NK, saved(run, "cell-labels")))
        for way, expected in aggregate(grid).items():
            assert found[i][way] == pytest.approx(expected)
    assert len(found) == 2


def test_a_run_on_everything_takes_the_temperatures_of_its_twin(make_run: MakeRun) -> None:
    run, twin = make_run(seed=5), make_run("twin", seed=7, train_on="split", name="digits/twin", warmup_steps=3)
    found = recalibrate(run, validation_run(run, twin))
    (temperature,) = fit_temperature(saved(twin, "clean"), saved(twin, "labels"), "after")
    assert found["ways"]["after"]["temperature"] == pytest.approx(temperature)
    assert found["fitted_on"]["run"] == "digits/twin, seed 7"
    assert found["fitted_on"]["part"] == "validation"
    assert found["clean_how"] == found["corrupted_how"] == "temperature of the twin run digits/twin, seed 7"
    scaled = apply_temperature(saved(run, "clean"), (temperature,), "after")
    expected = figures(image_scores(scaled, saved(run, "labels")))
    assert found["ways"]["after"]["clean"]["ensemble"] == pytest.approx(expected)


def test_the_temperatures_are_kept_beside_the_results(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    found = evaluate_run(run, device="cpu", recompute=True, recalibrate=True)["recalibrated"]
    kept = json.loads((run.folder / "temperatures.json").read_text())
    assert kept["schema"] == 1
    assert kept["fitted_on"] == found["fitted_on"]
    assert kept["temperatures"] == {kind: way["temperature"] for kind, way in found["ways"].items()}
    assert len(kept["temperatures"]["per-member"]) == 2


def test_temperatures_go_with_the_results_they_belong_to(
    make_run: MakeRun, evaluated: Callable[..., dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, compared = make_run(train_on="split"), make_run("other", seed=4, train_on="split")
    evaluated(run)
    evaluated(compared)
    temperatures = run.folder / "temperatures.json"
    temperatures.write_text("{}")
    evaluate_run(run, against=[compared.folder])
    assert temperatures.exists(), "only a comparison was added to the results"
    evaluate_run(run, device="cpu", recompute=True)
    assert not temperatures.exists()

    temperatures.write_text("{}")
    monkeypatch.setattr("counterpoint.evaluation.pipeline.write_results", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        evaluate_run(run, device="cpu", recompute=True, recalibrate=True)
    assert not temperatures.exists(), "wherever a crash comes, old temperatures are not beside new results"


def test_wrong_twins_are_refused(make_run: MakeRun) -> None:
    run, split = make_run(), make_run("split", train_on="split")
    with pytest.raises(InputError, match=r"trained on all images, .* --set train_on=split --out TWIN` .* --temperat"):
        validation_run(run, None)
    with pytest.raises(InputError, match="has validation images of its own; leave --temperatures-from out"):
        validation_run(split, split)
    with pytest.raises(InputError, match="was trained on all images too; the twin must have train_on=split"):
        validation_run(run, make_run("other"))
    with pytest.raises(InputError, match=r"is not the twin of .* \(epochs: 20 → 3\); they may differ in name, tr"):
        validation_run(run, make_run("short", train_on="split", epochs=3))
    (split.folder / "logits" / "clean.npy").unlink()
    with pytest.raises(InputError, match=r"clean\.npy is missing .* `counterpoint evaluate .*split` makes what is"):
        validation_run(run, split)
