"""Condensed scores: rows compared from their small files as their runs would be, and files that are refused."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.condensed import (
    CondensedCells,
    CondensedScores,
    condense,
    condensed_file,
    read_condensed,
    write_condensed,
)
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.scored import read_scored
from counterpoint.evaluation.scores import read_scores
from counterpoint.evaluation.suites import CORRUPTED
from counterpoint.metrics import ImageScores
from counterpoint.metrics.paired_calibration import CalibrationPart
from counterpoint.records.compared import Comparison, Difference
from counterpoint.records.files import read_record, read_results, write_record
from counterpoint.records.images import Images, MadeFrom
from counterpoint.reproduction.rows import keep_small
from counterpoint.runs.folder import Run, load_run
from counterpoint.storage.arrays import read_arrays, write_arrays
from counterpoint.training.loop import Options, train
from tests.made_runs import copied, evaluated, files_of, set_about, shift_of
from tests.small import QUICK, few_digits

FIGURES = ("error", "nll", "brier")
CALIBRATION = [f"ece_{kind}{binning}15_debiased" for kind in ("", "rms_") for binning in ("width", "mass")]


def keep(run: Path, result: Path) -> Path:
    """Leave of a run what `reproduce` keeps of a row."""
    write_record(result, keep_small(read_results(run / "results.json")))
    write_condensed(condensed_file(result), condense(read_scores(run)))
    return result


@pytest.fixture(scope="module")
def trained(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Path]]:
    """Two small networks that were trained on digits, with different seeds."""
    folder, data = tmp_path_factory.mktemp("trained"), few_digits(40)
    runs = [folder / f"seed{seed}" for seed in (3, 4)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("counterpoint.training.run_images.load", lambda *_: data)
        for seed, run in enumerate(runs, 3):
            assert train(QUICK, run, data, seed=seed, options=Options(device="cpu"))
            evaluate_run(load_run(run), root, device="cpu")
        yield runs


@pytest.fixture(scope="module")
def rows(runs: list[Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    for seed, run in enumerate(runs):
        keep(run.folder, folder / f"paper-{seed}.json")
    return folder


@pytest.fixture
def kept(rows: Path, tmp_path: Path) -> list[Path]:
    """Two rows that a test may change."""
    shutil.copytree(rows, tmp_path / "results")
    return [tmp_path / "results" / f"paper-{seed}.json" for seed in (0, 1)]


def is_near(found: Difference, expected: Difference) -> bool:
    """Within what rounding to 1e-4 makes of means over 40 images."""
    return vars(found) == pytest.approx(vars(expected), abs=2e-5)


def check_same(found: Comparison, expected: Comparison, longer: float) -> None:
    assert (found.experiment, found.seed, found.made_from) == (expected.experiment, expected.seed, expected.made_from)
    assert (found.scores, expected.scores) == ("condensed", "whole")
    assert found.clean is not None
    assert expected.clean is not None
    assert all(is_near(getattr(found.clean, name), getattr(expected.clean, name)) for name in FIGURES)
    assert all(getattr(found.clean, name) == getattr(expected.clean, name) for name in CALIBRATION)
    assert found.corrupted is not None
    assert expected.corrupted is not None
    assert all(is_near(getattr(found.corrupted.mean, name), getattr(expected.corrupted.mean, name)) for name in FIGURES)
    for name in CALIBRATION:
        own, other = (getattr(one.corrupted.by_corruption, name) for one in (found, expected) if one.corrupted)
        assert own.difference == other.difference
        assert other.low - (longer - 1) * (other.high - other.low) <= own.low <= other.low + 1e-4
        assert other.high - 1e-4 <= own.high <= other.high + (longer - 1) * (other.high - other.low)


def test_rows_are_compared_as_their_runs_would_be(trained: list[Path], tmp_path: Path) -> None:
    (expected,) = compare_run(trained[0], trained[1:]).against
    results = [keep(run, tmp_path / f"paper-{i}.json") for i, run in enumerate(trained)]
    (found,) = compare_run(results[0], results[1:]).against
    check_same(found, expected, longer=1.05)
    assert found.run == "paper-1"
    assert found.corrupted is not None
    assert found.corrupted.severities == ()
    assert found.corrupted.by_corruption.ece_mass15_debiased is not None
    assert expected.corrupted is not None
    assert found.corrupted.mean.error == expected.corrupted.mean.error, "whole numbers of mistakes"


def test_a_run_is_compared_with_a_row(trained: list[Path], tmp_path: Path) -> None:
    """Either way round; nothing is written beside the run, which a report would read."""
    ours, theirs = trained
    row, before = keep(theirs, tmp_path / "paper-1.json"), files_of(ours)
    (expected,) = compare_run(ours, [theirs], tmp_path / "whole.json").against
    (found,) = compare_run(ours, [row]).against
    check_same(found, expected, longer=1.05)
    (back,) = compare_run(row, [ours]).against
    assert back.run == ours.name
    assert back.corrupted is not None
    assert found.corrupted is not None
    assert back.corrupted.mean.nll.difference == pytest.approx(-found.corrupted.mean.nll.difference)
    assert files_of(ours) == before


def test_the_differences_are_kept_where_asked(kept: list[Path], tmp_path: Path) -> None:
    before = files_of(kept[0].parent)
    compare_run(kept[0], kept[1:])
    assert files_of(kept[0].parent) == before
    compared = compare_run(kept[0], kept[1:], tmp_path / "comparisons" / "one.json")
    assert read_record(tmp_path / "comparisons" / "one.json", type(compared), "") == compared
    assert files_of(kept[0].parent) == before
    with pytest.raises(InputError, match=r"comparisons is a folder; give a file name, such as .*compared\.json"):
        compare_run(kept[0], kept[1:], tmp_path / "comparisons")
    with pytest.raises(InputError, match=r"paper-1\.json holds what is known of a run, and it is never replaced"):
        compare_run(kept[0], kept[1:], kept[1])
    assert files_of(kept[0].parent) == before


def test_a_row_is_named_once(kept: list[Path]) -> None:
    with pytest.raises(InputError, match=r"paper-0\.json cannot be compared with itself"):
        compare_run(kept[0], [kept[1], kept[0]])
    with pytest.raises(InputError, match=r"paper-1\.json is given twice"):
        compare_run(kept[0], [kept[1], kept[1]])


def test_a_row_without_scores_is_refused(kept: list[Path]) -> None:
    condensed_file(kept[1]).unlink()
    for ours, theirs in (kept, reversed(kept)):
        with pytest.raises(InputError, match=r"paper-1\.json has no paper-1\.npz beside it .* Give a result that has"):
            compare_run(ours, [theirs])


def test_scores_of_another_evaluation_are_refused(kept: list[Path]) -> None:
    condensed_file(kept[0]).write_bytes(condensed_file(kept[1]).read_bytes())
    with pytest.raises(InputError, match=r"paper-0\.npz and paper-0\.json come from two evaluations; restore both"):
        read_scored(kept[0])


def test_rows_on_other_images_are_refused(kept: list[Path], runs: list[Run], tmp_path: Path) -> None:
    other = copied(runs[1], tmp_path / "other")
    set_about(other, clean={"dataset": "cifar10", "part": "test", "images": 80})
    evaluated(other)
    row = keep(other.folder, tmp_path / "paper-9.json")
    with pytest.raises(
        InputError,
        match=r"paper-0\.json was evaluated on 80 test images of digits .*, and .*paper-9\.json on .*cifar10",
    ):
        compare_run(kept[0], [row])


def test_a_row_without_cells(runs: list[Run], kept: list[Path], tmp_path: Path) -> None:
    other = copied(runs[1], tmp_path / "other")
    (other.folder / "logits" / "fog-1.npy").unlink()
    evaluated(other)
    row = keep(other.folder, tmp_path / "paper-9.json")
    assert read_condensed(condensed_file(row)).cells is None
    (found,) = compare_run(kept[0], [row]).against
    assert found.corrupted is None
    assert found.clean is not None


def test_what_is_written_is_read(runs: list[Run], tmp_path: Path) -> None:
    whole = condense(read_scores(runs[0].folder))
    write_condensed(tmp_path / "row.npz", whole)
    found = read_condensed(tmp_path / "row.npz")
    assert found.made_from == whole.made_from
    assert (found.clean.confidence == whole.clean.confidence).all()
    assert (found.clean.correct == whole.clean.correct).all()
    assert found.cells is not None
    assert whole.cells is not None
    assert (found.cells.means["error"] == whole.cells.means["error"]).all()
    pairs = [(found.clean.nll, whole.clean.nll), (found.clean.brier, whole.clean.brier)]
    pairs += [(found.cells.means[name], whole.cells.means[name]) for name in ("nll", "brier")]
    for rounded, values in pairs:
        assert rounded == pytest.approx(values, abs=1.001e-4)
        assert rounded.mean() == pytest.approx(values.mean(), abs=0.51e-4 / len(values))
    for name in CALIBRATION:
        one, other = found.cells.calibration[name], whole.cells.calibration[name]
        assert (one.value, one.low, one.high) == (other.value, other.low, other.high)
        assert one.influence_N == pytest.approx(other.influence_N, abs=1 / 256)


def test_the_file_is_small(tmp_path: Path) -> None:
    """At the size of CIFAR, and with scores that hardly compress."""
    rng = np.random.default_rng(0)

    def scores(images: int) -> ImageScores:
        return ImageScores(
            rng.random(images), rng.random(images) < 0.7, rng.exponential(1.5, images), 2 * rng.random(images)
        )

    cells = scores(10_000)
    means = {"error": rng.integers(0, 76, 10_000) / 75, "nll": cells.nll, "brier": cells.brier}
    parts = {name: CalibrationPart(0.1, 0.09, 0.11, rng.standard_normal(10_000)) for name in CALIBRATION}
    made_from = MadeFrom("weights", "fp32", Images("cifar100", "validation", 5000), shift_of(CORRUPTED, 10_000))
    write_condensed(tmp_path / "row.npz", CondensedScores(made_from, scores(5000), CondensedCells(means, parts)))
    assert (tmp_path / "row.npz").stat().st_size < 160_000


def test_a_file_that_is_cut_short_is_refused(kept: list[Path]) -> None:
    file = condensed_file(kept[0])
    content = file.read_bytes()
    for length in (0, 1, 100, len(content) // 2, len(content) - 1):
        file.write_bytes(content[:length])
        with pytest.raises(InputError, match=r"paper-0\.npz is missing or damaged .*; restore it from a copy, or give"):
            compare_run(kept[0], kept[1:])
    changed = bytearray(content)
    changed[len(content) // 3] ^= 255
    file.write_bytes(changed)
    with pytest.raises(InputError, match=r"paper-0\.npz is .*damaged"):
        compare_run(kept[0], kept[1:])


def _about(changes: dict[str, Any]) -> Any:
    def change(arrays: dict[str, Any]) -> dict[str, Any]:
        return {"about": np.array(json.dumps(json.loads(str(arrays["about"])) | changes))}

    return change


def _without_severities(arrays: dict[str, Any]) -> dict[str, Any]:
    about = json.loads(str(arrays["about"]))
    about["made_from"]["corrupted"]["severities"] = []
    return {"about": np.array(json.dumps(about))}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _: {"about": np.array("{")}, "Expecting"),
        (lambda _: {"about": np.array("[]")}, ""),
        (_about({"version": 2}), "version is 2, and this counterpoint reads 1"),
        (_about({"made_from": None}), "made_from"),
        (_about({"calibration": None}), "calibration is there without cells, or is missing"),
        (_about({"calibration": {}}), "calibration"),
        (_without_severities, "made_from.corrupted has no cells"),
        (lambda a: {"clean/nll": a["clean/nll"][:-1]}, r"clean/nll is .*\(79,\), and there are 80 images"),
        (lambda a: {"clean/nll": a["clean/nll"] * 0.5}, "clean/nll is float64"),
        (lambda a: {"clean/brier": a["clean/brier"].astype(int) - 10**6}, "clean/brier has a number below 0"),
        (lambda a: {"clean/confidence": a["clean/confidence"] + 1}, "clean/confidence has a number that is not from 0"),
        (lambda a: {"clean/confidence": a["clean/confidence"] * np.float32(np.nan)}, "clean/confidence has a number"),
        (lambda a: {"clean/correct": a["clean/correct"].astype(int)}, "clean/correct is int64"),
        (lambda a: {"cells/wrong": a["cells/wrong"] + np.uint8(76)}, "cells/wrong has more mistakes than"),
        (
            lambda a: {"cells/ece_mass15": a["cells/ece_mass15"][None]},
            r"cells/ece_mass15 is .*\(1, 30\), and there are 30",
        ),
    ],
)
def test_what_cannot_be_right_is_refused(kept: list[Path], change: Any, message: str) -> None:
    file = condensed_file(kept[0])
    arrays = read_arrays(file, "")
    write_arrays(file, arrays | change(arrays))
    with pytest.raises(InputError, match=rf"paper-0\.npz is damaged or is no file of condensed scores \(.*{message}"):
        compare_run(kept[0], kept[1:])


def test_a_missing_array_is_named(kept: list[Path]) -> None:
    file = condensed_file(kept[0])
    arrays = read_arrays(file, "")
    for name in arrays:
        write_arrays(file, {other: values for other, values in arrays.items() if other != name})
        with pytest.raises(
            InputError, match=rf"paper-0\.npz is damaged or is no file of condensed scores \('{name}'\)"
        ):
            compare_run(kept[0], kept[1:])
