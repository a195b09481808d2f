"""Comparisons of two runs from their results and scores alone, and the files that are refused."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import ttest_rel

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.scored import read_scored
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import calibration_differences, paired_differences
from counterpoint.records.codec import encode
from counterpoint.records.compared import Compared
from counterpoint.records.files import read_evaluated, read_record, read_results
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_arrays
from tests.made_runs import SOURCE, MakeRun, copied, evaluated, files_of, set_about, shift_of


@pytest.fixture
def pair(runs: list[Run], tmp_path: Path) -> tuple[Path, Path]:
    """What travels of the two runs."""
    copies = tmp_path / "sent1", tmp_path / "sent2"
    for run, copy in zip(runs, copies, strict=True):
        copy.mkdir()
        for file in ("results.json", "scores.npz"):
            shutil.copy(run.folder / file, copy / file)
    return copies


def change_results(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    results = json.loads((folder / "results.json").read_text())
    change(results)
    (folder / "results.json").write_text(json.dumps(results))


def test_an_image_counts_once_over_its_cells(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    (found,) = compare_run(ours, [theirs]).against
    assert (found.experiment, found.seed, found.run) == ("digits/quickstart", 2, "sent2")
    assert found.corrupted is not None
    scores = [np.load(folder / "scores.npz") for folder in pair]
    for cells, means in (
        ([f"{name}-{i}" for name in CORRUPTIONS for i in range(1, 6)], found.corrupted.mean),
        ([f"{name}-4" for name in CORRUPTIONS], found.corrupted.severities[3]),
    ):
        ours_N, theirs_N = (sum(run[f"{cell}/brier"].astype(float) for cell in cells) / len(cells) for run in scores)
        expected = ttest_rel(ours_N, theirs_N).confidence_interval(0.95)
        assert means.brier.difference == pytest.approx((ours_N - theirs_N).mean())
        assert (means.brier.low, means.brier.high) == pytest.approx(tuple(expected))
        right = [np.mean([run[f"{cell}/correct"] for cell in cells]) for run in scores]
        assert means.error.difference == pytest.approx(right[1] - right[0])


def test_clean_differences_are_the_paired_ones(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    (found,) = compare_run(ours, [theirs]).against
    assert found.clean is not None
    expected = paired_differences(read_scores(ours).clean, read_scores(theirs).clean)
    assert encode(found.clean) == {
        name: {"difference": interval.value, "low": interval.low, "high": interval.high}
        for name, interval in expected.items()
    }
    ours_nll, theirs_nll = (read_results(folder / "results.json").clean.ensemble.nll for folder in pair)
    assert found.clean.nll.difference == pytest.approx(ours_nll - theirs_nll, rel=1e-4)


def test_calibration_errors_over_the_cells_are_by_corruption(pair: tuple[Path, Path]) -> None:
    ours, other = pair
    (found,) = compare_run(ours, [other]).against
    assert found.corrupted is not None
    expected = calibration_differences(read_scores(ours).cells, read_scores(other).cells)
    assert expected
    assert encode(found.corrupted.by_corruption) == {
        name: {"difference": own.value, "low": own.low, "high": own.high} for name, own in expected.items()
    }


def test_the_file_says_what_was_compared(pair: tuple[Path, Path]) -> None:
    compared = compare_run(pair[0], [pair[1]])
    assert read_record(pair[0] / "compared.json", Compared, "") == compared
    ours, theirs = (read_results(folder / "results.json") for folder in pair)
    assert (compared.experiment, compared.seed) == ("digits/quickstart", 1)
    assert compared.made_from == ours.made_from
    assert compared.against[0].made_from == theirs.made_from
    assert ours.made_from.weights != theirs.made_from.weights
    assert read_evaluated(pair[0]).compared == compared


def test_compare_writes_its_own_file_alone(runs: list[Run], tmp_path: Path) -> None:
    run, other = (copied(one, tmp_path / f"run{i}") for i, one in enumerate(runs))
    before = [files_of(folder) for folder in (run.folder, other.folder)]
    compare_run(run.folder, [other.folder])
    after = files_of(run.folder)
    assert after.keys() - before[0].keys() == {"compared.json"}
    assert after.items() >= before[0].items()
    assert files_of(other.folder) == before[1]


def test_a_later_comparison_replaces_the_earlier_one(pair: tuple[Path, Path], runs: list[Run]) -> None:
    ours, theirs = pair
    first = compare_run(ours, [theirs, runs[1].folder])
    assert [comparison.run for comparison in first.against] == ["sent2", "run"]
    second = compare_run(ours, [theirs])
    assert second.against == first.against[:1]
    assert read_evaluated(ours).compared == second


def test_a_run_is_not_compared_with_itself(pair: tuple[Path, Path]) -> None:
    for same in (pair[0], pair[1] / ".." / "sent1", pair[0] / "results.json"):
        with pytest.raises(InputError, match="sent1 cannot be compared with itself"):
            compare_run(pair[0], [pair[1], same])
    assert not (pair[0] / "compared.json").exists()


def test_another_run_that_is_not_in_a_list(pair: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"others is '.*sent2'; it must be a list, such as \['.*sent2'\]"):
        compare_run(pair[0], str(pair[1]))


def test_a_run_is_not_compared_twice_with_the_same(pair: tuple[Path, Path]) -> None:
    with pytest.raises(InputError, match=r"sent2/results\.json is given twice; name each run once"):
        compare_run(pair[0], [pair[1], pair[1] / "results.json"])


def test_a_results_file_stands_for_its_folder(pair: tuple[Path, Path]) -> None:
    ours, theirs = pair
    expected = compare_run(ours, [theirs]).against
    assert compare_run(ours / "results.json", [theirs / "results.json"]).against == expected
    assert read_evaluated(ours).compared is not None


def test_parts_on_other_images_are_left_out(pair: tuple[Path, Path], make_run: MakeRun) -> None:
    on_split = make_run("split", train_on="split")
    few_cells = make_run("few", cell_images=10)
    other_frost = make_run("frost")
    shift = replace(shift_of(CORRUPTED, 30), source=replace(SOURCE, frost="photographs"))
    set_about(other_frost, corrupted=encode(shift))
    for run, missing in ((on_split, "clean"), (few_cells, "corrupted"), (other_frost, "corrupted")):
        evaluated(run)
        (found,) = compare_run(pair[0], [run.folder]).against
        assert [part for part in ("clean", "corrupted") if getattr(found, part) is None] == [missing]


def test_runs_without_common_images_are_refused(pair: tuple[Path, Path], runs: list[Run], tmp_path: Path) -> None:
    other = copied(runs[1], tmp_path / "other")
    set_about(other, clean={"dataset": "cifar10", "part": "test", "images": 80})
    evaluated(other)
    with pytest.raises(
        InputError,
        match=r"sent1 was evaluated on 80 test images of digits and 30 images per cell "
        r"\(regenerated, seed 0, generator 1, frost texture, constants cifar-c\), "
        r"and .*other on 80 test images of cifar10 and .*; give runs evaluated on the same images",
    ):
        compare_run(pair[0], [other.folder])
    assert not (pair[0] / "compared.json").exists()


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("evaluation", "weights"), "others"),
        (("evaluation", "precision"), "bf16"),
        (("evaluated_on", "images"), 79),
        (("corrupted", "images"), 10),
        (("corrupted", "source", "frost"), "photographs"),
    ],
    ids=lambda value: ".".join(value) if isinstance(value, tuple) else "",
)
def test_scores_of_another_evaluation_are_refused(
    pair: tuple[Path, Path], place: tuple[str, ...], value: str | int
) -> None:
    def change(results: dict[str, Any]) -> None:
        for key in place[:-1]:
            results = results[key]
        results[place[-1]] = value

    change_results(pair[0], change)
    for ours, theirs in (pair, reversed(pair)):
        with pytest.raises(InputError, match=r"sent1/scores\.npz and results\.json come from two eval.* --recompute`"):
            compare_run(ours, [theirs])


def test_damaged_and_foreign_files_are_refused(pair: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken"

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message):
            read_scored(broken)
        shutil.rmtree(broken)

    def fresh() -> Path:
        shutil.copytree(pair[0], broken)
        return broken

    broken.mkdir()
    (broken / "run.json").touch()
    refused(r"broken/run\.json is damaged or is not a JSON file")
    text = (fresh() / "results.json").read_text()
    (broken / "results.json").write_text(text[: len(text) // 2])
    refused(r"results\.json is damaged or is not JSON")
    (fresh() / "results.json").write_text('["another program"]')
    refused("names no schema")
    change_results(fresh(), lambda results: results.pop("clean"))
    refused(r"results\.json is damaged or incomplete: clean is missing")
    change_results(fresh(), lambda results: results["corrupted"]["cells"]["fog"].pop())
    refused(r"corrupted\.cells\.fog has 4 values, and there are 5 severities")
    change_results(fresh(), lambda results: results["corrupted"]["cells"].pop("fog"))
    refused(r"corrupted\.cells\.fog is missing")
    content = (fresh() / "scores.npz").read_bytes()
    (broken / "scores.npz").write_bytes(content[: len(content) // 2])
    refused(r"scores\.npz is missing or damaged .*`counterpoint evaluate .*broken --recompute` makes it again")
    write_arrays(fresh() / "scores.npz", {"clean/confidence": np.ones(3)})
    refused(r"is damaged or is not a scores file \('made_from'\); `counterpoint evaluate")
    whole = dict(np.load(fresh() / "scores.npz"))
    without = {name: values for name, values in whole.items() if name != "gaussian_noise-1/confidence"}
    write_arrays(broken / "scores.npz", without)
    refused(r"is damaged or is not a scores file \('gaussian_noise-1/confidence'\); `counterpoint evaluate")
    for damage in ("{", "[]", '{"weights": 3}'):
        write_arrays(fresh() / "scores.npz", whole | {"made_from": np.array(damage)})
        refused(r"is damaged or is not a scores file \(.*\); `counterpoint evaluate")
    write_arrays(fresh() / "scores.npz", whole | {"fog-3/nll": np.array("a word")})
    refused(r"is damaged or is not a scores file \(could not convert .*\); `counterpoint evaluate")
    with (fresh() / "scores.npz").open("wb") as file:
        np.save(file, np.ones(3))
    refused(r"scores\.npz is missing or damaged")
