"""Comparisons of two runs from their results and scores alone, and the files that are refused."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import add_comparisons, read_evaluated
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.scores import read_scores
from counterpoint.metrics import calibration_differences, paired_differences
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_arrays

MakeRun = Callable[..., Run]
Evaluate = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def sent(make_run: MakeRun, evaluated: Evaluate) -> list[Path]:
    runs = [make_run(seed=seed) for seed in (1, 2)]
    for run in runs:
        evaluated(run)
    return [run.folder for run in runs]


@pytest.fixture
def pair(sent: list[Path], tmp_path: Path) -> tuple[Path, Path]:
    """Two evaluated runs, of which only what travels is there."""
    copies = tmp_path / "sent1", tmp_path / "sent2"
    for folder, copy in zip(sent, copies, strict=True):
        copy.mkdir()
        for file in ("results.json", "scores.npz"):
            shutil.copy(folder / file, copy / file)
    return copies


def change_results(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    results = json.loads((folder / "results.json").read_text())
    change(results)
    (folder / "results.json").write_text(json.dumps(results))


def test_an_image_counts_once_over_its_cells(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    (entry,) = add_comparisons(ours, [read_evaluated(theirs)])["against"]
    assert (entry["experiment"], entry["seed"], entry["run"]) == ("digits/quickstart", 2, "sent2")
    scores = [np.load(folder / "scores.npz") for folder in pair]
    for cells, found in (
        ([f"{name}-{i}" for name in CORRUPTIONS for i in range(1, 6)], entry["corrupted"]["mean"]),
        ([f"{name}-4" for name in CORRUPTIONS], entry["corrupted"]["severities"][3]),
    ):
        assert list(found) == ["error", "nll", "brier"]
        ours_N, theirs_N = (sum(run[f"{cell}/brier"].astype(float) for cell in cells) / len(cells) for run in scores)
        expected = ttest_rel(ours_N, theirs_N).confidence_interval(0.95)
        assert found["brier"]["difference"] == pytest.approx((ours_N - theirs_N).mean())
        assert (found["brier"]["low"], found["brier"]["high"]) == pytest.approx(tuple(expected))
        right = [np.mean([run[f"{cell}/correct"] for cell in cells]) for run in scores]
        assert found["error"]["difference"] == pytest.approx(right[1] - right[0])


def test_clean_differences_are_the_paired_ones(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    (entry,) = add_comparisons(ours, [read_evaluated(theirs)])["against"]
    expected = paired_differences(read_scores(ours).clean, read_scores(theirs).clean)
    assert entry["clean"] == {
        name: {"difference": interval.value, "low": interval.low, "high": interval.high}
        for name, interval in expected.items()
    }
    results = [json.loads((folder / "results.json").read_text())["clean"]["ensemble"] for folder in pair]
    assert entry["clean"]["nll"]["difference"] == pytest.approx(results[0]["nll"] - results[1]["nll"], rel=1e-4)


def test_calibration_errors_over_the_cells_are_by_corruption(pair: tuple[Path, Path]) -> None:
    ours, other = pair
    (entry,) = add_comparisons(ours, [read_evaluated(other)])["against"]
    expected = calibration_differences(read_scores(ours).cells, read_scores(other).cells)
    assert entry["corrupted"]["by_corruption"] == {
        name: {"difference": own.value, "low": own.low, "high": own.high} for name, own in expected.items()
    }


def test_an_evaluated_run_is_only_compared(pair: tuple[Path, Path], make_run: MakeRun, evaluated: Evaluate) -> None:
    run = make_run(seed=3)
    before = evaluated(run)
    shutil.rmtree(run.folder / "logits")
    results = evaluate_run(run, device="cpu", against=pair)
    assert [entry["seed"] for entry in results.pop("against")] == [1, 2]
    assert results == before
    again = evaluate_run(run, device="cpu", against=pair[1:])
    assert [entry["seed"] for entry in again["against"]] == [2], "a later command replaces the comparisons"
    assert json.loads((run.folder / "results.json").read_text()) == again


@pytest.mark.parametrize("asked", [(5, None), (None, 5)], ids=["clean", "cells"])
def test_an_evaluated_run_is_not_only_compared_where_other_images_are_asked_for(
    pair: tuple[Path, Path],
    make_run: MakeRun,
    evaluated: Evaluate,
    monkeypatch: pytest.MonkeyPatch,
    asked: tuple[int | None, int | None],
) -> None:
    run = make_run(seed=3)
    evaluated(run)
    collected: list[Any] = []

    def collect(*_: object, clean_images: int | None, cell_images: int | None, **__: object) -> None:
        collected.append((clean_images, cell_images))

    monkeypatch.setattr("counterpoint.evaluation.pipeline.collect_logits", collect)
    monkeypatch.setattr("counterpoint.evaluation.pipeline.describe_run", lambda run, _: run)
    for name in ("finished_checkpoint", "corrupted_set"):
        monkeypatch.setattr(f"counterpoint.evaluation.pipeline.{name}", lambda *_: None)
    evaluate_run(run, device="cpu", against=pair, clean_images=asked[0], cell_images=asked[1])
    assert collected == [asked]


def test_figures_and_comparisons_in_one_go(pair: tuple[Path, Path], make_run: MakeRun) -> None:
    run = make_run(seed=3, train_on="split")
    results = evaluate_run(run, device="cpu", recompute=True, recalibrate=True, against=pair[:1])
    assert results["recalibrated"]["fitted_on"]["run"] == "this run"
    assert results["against"][0]["clean"] is None, "validation images are not the test images"
    assert results["against"][0]["corrupted"] is not None


@pytest.mark.parametrize(
    ("keys", "value", "part"),
    [
        (("evaluated_on", "part"), "validation", "clean"),
        (("corrupted", "source", "frost"), "photographs", "corrupted"),
    ],
)
def test_parts_on_other_images_are_left_out(
    pair: tuple[Path, Path], keys: tuple[str, ...], value: str, part: str
) -> None:
    def change(results: dict[str, Any]) -> None:
        for key in keys[:-1]:
            results = results[key]
        results[keys[-1]] = value

    change_results(pair[1], change)
    (entry,) = add_comparisons(pair[0], [read_evaluated(pair[1])])["against"]
    assert [name for name in ("clean", "corrupted") if entry[name] is None] == [part]


def test_runs_without_common_images_are_refused(pair: tuple[Path, Path]) -> None:
    change_results(pair[1], lambda results: results["evaluated_on"].update(dataset="cifar10"))
    with pytest.raises(InputError, match=r"sent1 was evaluated on 80 test images of digits and 30 images per cell"):
        add_comparisons(pair[0], [read_evaluated(pair[1])])
    assert "against" not in json.loads((pair[0] / "results.json").read_text())


def test_other_cell_images_are_not_compared(pair: tuple[Path, Path], make_run: MakeRun, evaluated: Evaluate) -> None:
    run = make_run(cell_images=10)
    evaluated(run)
    (entry,) = add_comparisons(pair[0], [read_evaluated(run.folder)])["against"]
    assert entry["clean"] is not None
    assert entry["corrupted"] is None


def test_damaged_and_foreign_files_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_evaluated(broken)
        shutil.rmtree(broken)

    def fresh() -> Path:
        shutil.copytree(pair[0], broken)
        return broken

    broken.mkdir()
    refused(r"results\.json does not exist \(`counterpoint evaluate .*broken` makes it\)")
    text = (fresh() / "results.json").read_text()
    (broken / "results.json").write_text(text[: len(text) // 2])
    refused(r"results\.json is not a whole JSON file .*`counterpoint evaluate .*broken` makes it")
    (fresh() / "results.json").write_text('["another program"]')
    refused(r"is not a results file of this version \(schema 1\); `counterpoint evaluate")
    change_results(fresh(), lambda results: results.pop("clean"))
    refused(r"is not a whole results file \('clean': missing or of the wrong kind\); `counterpoint evaluate")
    change_results(fresh(), lambda results: results["corrupted"]["cells"]["fog"].pop())
    refused("come from two evaluations")
    content = (fresh() / "scores.npz").read_bytes()
    (broken / "scores.npz").write_bytes(content[: len(content) // 2])
    refused(r"scores\.npz is missing or damaged .*`counterpoint evaluate .*broken --recompute` makes it again")
    shutil.copy(pair[1] / "scores.npz", fresh() / "scores.npz")
    refused(r"scores\.npz and results\.json come from two evaluations; `counterpoint evaluate .* --recompute`")
    write_arrays(fresh() / "scores.npz", {"clean/confidence": np.ones(3)})
    refused(r"is not a whole scores file \('gaussian_noise-1/confidence'\); `counterpoint evaluate")
    whole = dict(np.load(fresh() / "scores.npz"))
    write_arrays(broken / "scores.npz", whole | {"fog-3/nll": np.array("a word")})
    refused(r"is not a whole scores file \(could not convert .*\); `counterpoint evaluate")
    with (fresh() / "scores.npz").open("wb") as file:
        np.save(file, np.ones(3))
    refused(r"scores\.npz is missing or damaged")
