"""Temperatures of a run: what they are fitted on, what they change, and the runs and twins that are refused."""

import json
from collections import Counter
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import counterpoint.evaluation.logits
from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.logits import read_logits
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.evaluation.temperatures import recalibrate_run
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
from counterpoint.records.codec import encode
from counterpoint.records.files import read_evaluated, read_record, read_results
from counterpoint.records.recalibrated import FittedOn, Recalibrated
from counterpoint.records.results import Images
from counterpoint.runs.folder import Run
from tests.made_runs import MakeRun, copied, evaluated, files_of, saved, set_about

KINDS: tuple[Kind, ...] = get_args(Kind)


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    """An evaluated run on the split."""
    run = make_run(train_on="split")
    evaluated(run)
    return run


@pytest.fixture(scope="module")
def found(run: Run) -> Recalibrated:
    return recalibrate_run(run)


@pytest.fixture(scope="module")
def on_all(make_run: MakeRun) -> Run:
    """An evaluated run that was trained on all images."""
    run = make_run(seed=5)
    evaluated(run)
    return run


@pytest.fixture(scope="module")
def twin(make_run: MakeRun) -> Run:
    """The twin of `on_all`, of which only the logits are needed."""
    return make_run("twin", seed=7, train_on="split", name="digits/twin", warmup_steps=3)


def same(found: Any, expected: Any) -> bool:
    """Whether two records of figures are equal, but for rounding errors."""
    return bool(encode(found) == pytest.approx(encode(expected)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_split_run_is_cross_fitted_on_its_validation_images(run: Run, found: Recalibrated, kind: Kind) -> None:
    assert found.fitted_on == FittedOn(Images("digits", "validation", 80), "this run", "weights of seed 0")
    assert found.clean_how == "cross-fitted on two seeded halves of the validation images"
    assert found.corrupted_how == "temperature of all 80 validation images"
    logits, labels = saved(run, "clean"), saved(run, "labels")
    expected = figures(image_scores(cross_fitted_probabilities(logits, labels, kind), labels))
    assert same(found.ways[kind].clean.ensemble, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_cells_are_scaled_with_the_temperature_of_all_validation_images(
    run: Run, found: Recalibrated, kind: Kind
) -> None:
    temperatures = fit_temperature(saved(run, "clean"), saved(run, "labels"), kind)
    scaled = found.ways[kind]
    assert scaled.temperatures == pytest.approx(temperatures)
    assert len(temperatures) == (2 if kind == "per-member" else 1)
    grid = {
        name: [
            image_scores(apply_temperature(saved(run, f"{name}-{i}"), temperatures, kind), saved(run, "cell-labels"))
            for i in range(1, 6)
        ]
        for name in CORRUPTIONS
    }
    assert scaled.corrupted is not None
    for way, expected in aggregate(grid).items():
        assert same(scaled.corrupted.ensemble[way], expected)


def test_members_are_scaled_before_averaging_only(run: Run, found: Recalibrated) -> None:
    plain, after = read_results(run.folder / "results.json"), found.ways["after"]
    assert plain.corrupted is not None
    assert after.corrupted is not None
    assert after.clean.members == plain.clean.members, "as they were"
    assert after.corrupted.members == plain.corrupted.aggregates.members
    logits, labels = saved(run, "clean"), saved(run, "labels")
    first_half, second_half = np.array_split(np.random.default_rng(0).permutation(80), 2)
    shared: tuple[Kind, ...] = ("before",)
    for kind in (*shared, "per-member"):
        for i in range(2):
            fitted_with = logits if kind in shared else logits[i : i + 1]
            halves = []
            for fitted, applied in ((first_half, second_half), (second_half, first_half)):
                (temperature,) = fit_temperature(fitted_with[:, fitted], labels[fitted], "before")
                exponentials = np.exp(logits[i, applied].astype(np.float64) / temperature)
                probs = exponentials / exponentials.sum(axis=1, keepdims=True)
                halves.append(image_scores(probs, labels[applied]))
            assert same(found.ways[kind].clean.members[i], figures(join_scores(halves)))


@pytest.mark.parametrize("kind", ["before", "per-member"])
def test_members_are_scaled_in_the_cells_too(run: Run, found: Recalibrated, kind: Kind) -> None:
    scaled = found.ways[kind].corrupted
    assert scaled is not None
    assert len(scaled.members) == 2
    temperatures = fit_temperature(saved(run, "clean"), saved(run, "labels"), kind)
    for i, temperature in enumerate(temperatures * (2 // len(temperatures))):
        grid: dict[str, list[ImageScores]] = {name: [] for name in CORRUPTIONS}
        for name, severity in CORRUPTED.cells:
            logits_1NK = saved(run, f"{name}-{severity}")[i : i + 1]
            probs_NK = apply_temperature(logits_1NK, (temperature,), "before")
            grid[name].append(image_scores(probs_NK, saved(run, "cell-labels")))
        for way, expected in aggregate(grid).items():
            assert same(scaled.members[i][way], expected)


def test_a_run_on_everything_takes_the_temperatures_of_its_twin(on_all: Run, twin: Run) -> None:
    found = recalibrate_run(on_all, twin)
    (temperature,) = fit_temperature(saved(twin, "clean"), saved(twin, "labels"), "after")
    assert found.ways["after"].temperatures == pytest.approx((temperature,))
    twins_images = Images("digits", "validation", 80)
    assert found.fitted_on == FittedOn(twins_images, "digits/twin, seed 7", "weights of seed 7")
    assert found.clean_how == found.corrupted_how == "temperature of the twin run digits/twin, seed 7"
    scaled = apply_temperature(saved(on_all, "clean"), (temperature,), "after")
    expected = figures(image_scores(scaled, saved(on_all, "labels")))
    assert same(found.ways["after"].clean.ensemble, expected)


def test_the_file_holds_it_all_and_says_which_logits_it_was_made_from(run: Run, found: Recalibrated) -> None:
    assert read_record(run.folder / "recalibrated.json", Recalibrated, "") == found
    results = read_results(run.folder / "results.json")
    assert found.made_from == results.made_from
    assert read_evaluated(run.folder).recalibrated == found
    assert list(found.ways) == ["before", "after", "per-member"]


def test_recalibrate_writes_its_own_file_alone(on_all: Run, twin: Run, tmp_path: Path) -> None:
    run = copied(on_all, tmp_path / "run")
    (run.folder / "recalibrated.json").unlink(missing_ok=True)
    before = files_of(run.folder), files_of(twin.folder)
    recalibrate_run(run, twin)
    after = files_of(run.folder)
    assert after.keys() - before[0].keys() == {"recalibrated.json"}
    assert after.items() >= before[0].items()
    assert files_of(twin.folder) == before[1]


def test_each_cell_is_read_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: Counter[str] = Counter()

    def counted(of_run: Run, name: str) -> np.ndarray:
        read[name] += 1
        return read_logits(of_run, name)

    for module in (counterpoint.evaluation.logits, counterpoint.evaluation.temperatures):
        monkeypatch.setattr(module, "read_logits", counted)
    recalibrate_run(copied(run, tmp_path / "run"))
    cells = [f"{name}-{severity}" for name, severity in CORRUPTED.cells]
    assert {name: read[name] for name in cells} == dict.fromkeys(cells, 1)


def test_without_cells_the_clean_figures_are_recalibrated(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    (run.folder / "logits" / "fog-1.npy").unlink()
    evaluated(run)
    found = recalibrate_run(run)
    assert [scaled.corrupted for scaled in found.ways.values()] == [None] * 3
    assert read_evaluated(run.folder).recalibrated == found


def test_what_was_not_evaluated_is_refused(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    with pytest.raises(InputError, match=r"has no results\.json; `counterpoint evaluate .*` makes it"):
        recalibrate_run(run)
    assert not (run.folder / "recalibrated.json").exists()


@pytest.mark.parametrize(
    "change",
    [{"weights": "others"}, {"precision": "bf16"}, {"corrupted": {"source": {"kind": "official"}, "images": 30}}],
    ids=lambda change: next(iter(change)),
)
def test_results_of_other_logits_are_refused(run: Run, tmp_path: Path, change: dict[str, Any]) -> None:
    run = copied(run, tmp_path / "run")
    (run.folder / "recalibrated.json").unlink(missing_ok=True)
    set_about(run, **change)
    with pytest.raises(
        InputError, match=r"results\.json was made from other logits than those in .* evaluate .*run --recompute` makes"
    ):
        recalibrate_run(run)
    assert not (run.folder / "recalibrated.json").exists()


@pytest.mark.parametrize("change", ["weights", "precision", "images"])
def test_temperatures_of_other_logits_are_left_out_with_a_note(
    run: Run, found: Recalibrated, tmp_path: Path, change: str
) -> None:
    run = copied(run, tmp_path / "run")
    assert read_evaluated(run.folder).recalibrated == found
    path = run.folder / "results.json"
    results = json.loads(path.read_text())
    results["corrupted" if change == "images" else "evaluation"][change] = 29 if change == "images" else "another"
    path.write_text(json.dumps(results))
    evaluation = read_evaluated(run.folder)
    assert evaluation.recalibrated is None
    (note,) = evaluation.notes
    assert note == (
        f"left out: {run.folder / 'recalibrated.json'} was made from other logits than results.json; "
        f"`counterpoint recalibrate {run.folder}` makes it again"
    )


def test_wrong_twins_are_refused(run: Run, on_all: Run, make_run: MakeRun) -> None:
    with pytest.raises(InputError, match=r"trained on all images, .* --set train_on=split --out TWIN` .* --twin TWIN"):
        recalibrate_run(on_all)
    with pytest.raises(InputError, match="has validation images of its own; leave --twin out"):
        recalibrate_run(run, run)
    with pytest.raises(InputError, match="was trained on all images too; the twin must have train_on=split"):
        recalibrate_run(on_all, make_run("other"))
    with pytest.raises(InputError, match=r"is not the twin of .* \(epochs: 20 → 3\); they may differ in name, tr"):
        recalibrate_run(on_all, make_run("short", train_on="split", epochs=3))
    without_logits = make_run("split", train_on="split")
    (without_logits.folder / "logits" / "clean.npy").unlink()
    with pytest.raises(InputError, match=r"clean\.npy is missing .* `counterpoint evaluate .*split` makes what is"):
        recalibrate_run(on_all, without_logits)
