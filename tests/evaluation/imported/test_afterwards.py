"""What needs no network takes given predictions like a run's: recalibration, threshold, comparison."""

from pathlib import Path
from typing import Any

import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.imported.importing import evaluate_logits
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.recalibration.apply import Labelled
from counterpoint.recalibration.families import families
from counterpoint.recalibration.fit import FitSet, fit
from counterpoint.records.files import read_evaluated
from counterpoint.runs.imported import load_any_run
from tests.made_predictions import made_arrays, made_labels, made_logits, shifted_arrays
from tests.made_runs import MakeRun, evaluated


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Predictions of two members with a validation part and shifts."""
    folder = tmp_path_factory.mktemp("imports") / "a"
    evaluate_logits(made_arrays(images=400) | shifted_arrays(images=400), folder)
    return folder


def imported(folder: Path, **arrays: Any) -> Path:
    evaluate_logits(arrays, folder)
    return folder


def test_temperatures_come_from_the_validation_part_alone(folder: Path) -> None:
    recalibrated = recalibrate_run(load_any_run(folder))
    assert recalibrated.fitted_on.images == read_evaluated(folder).results.validated_on
    assert (recalibrated.fitted_on.run, recalibrated.fitted_on.weights) == ("this run", None)
    assert recalibrated.clean_how == "parameters of all validation images"
    arrays = made_arrays(images=400)
    on = FitSet(Labelled(arrays["validation_logits"], arrays["validation_labels"]), 1.0)
    for family in families(2, shifted=False):
        assert recalibrated.ways[family.name].recalibration == fit(family, [on])
    assert read_evaluated(folder).recalibrated == recalibrated


def test_a_threshold_is_chosen_on_the_validation_part_and_checked_on_the_others(folder: Path) -> None:
    thresholded = threshold_run(load_any_run(folder), 0.2)
    assert thresholded.promise.images + thresholded.fitted_images == 420
    assert thresholded.test is not None
    assert thresholded.test.images == 400
    assert {name: len(cells) for name, cells in thresholded.cells.items()} == {"fog": 2, "night shots": 2}
    assert read_evaluated(folder).thresholded == thresholded


def test_without_a_validation_part_neither_is_there(tmp_path: Path) -> None:
    run = load_any_run(imported(tmp_path / "a", **made_arrays(validation=False)))
    added = r"add the arrays validation_logits \(or validation_probs\) and validation_labels to the file"
    with pytest.raises(InputError, match=f"no predictions for validation images to fit a temperature on; {added}"):
        recalibrate_run(run)
    with pytest.raises(InputError, match=f"no predictions for validation images to choose a threshold on; {added}"):
        threshold_run(run, 0.1)


def test_there_is_nothing_to_choose_on(folder: Path) -> None:
    with pytest.raises(
        InputError, match=r"has no logits of validation images under shift .*; leave choosing \(--choose\) out"
    ):
        recalibrate_run(load_any_run(folder), choosing=True)


def test_models_on_the_same_images_are_compared(folder: Path, tmp_path: Path) -> None:
    arrays = made_arrays(images=400, seed=3) | shifted_arrays(images=400, seed=3)
    other = imported(tmp_path / "b", **dict(reversed(arrays.items())), name="the other")
    (found,) = compare_run(folder, [other]).against
    assert (found.experiment, found.seed, found.called, found.run) == ("the other", None, "the other", "b")
    assert found.clean is not None
    assert found.corrupted is not None
    assert len(found.corrupted.severities) == 2
    ours, theirs = (read_evaluated(one).results for one in (folder, other))
    expected = ours.clean.ensemble.error - theirs.clean.ensemble.error
    assert found.clean.error.difference == pytest.approx(expected)
    compared = read_evaluated(folder).compared
    assert compared is not None
    assert (compared.seed, compared.against) == (None, (found,))


def test_members_need_not_be_as_many_to_be_compared(folder: Path, tmp_path: Path) -> None:
    (found,) = compare_run(folder, [imported(tmp_path / "b", **made_arrays(images=400, members=1))]).against
    assert found.clean is not None
    assert found.corrupted is None


def other_labels() -> dict[str, Any]:
    labels_N = made_labels(400, seed=9)
    return {"logits": made_logits(labels_N), "labels": labels_N}


@pytest.mark.parametrize(
    "arrays", [other_labels(), made_arrays(images=300), made_arrays(images=400) | {"dataset": "toys"}]
)
def test_other_images_are_not_compared(folder: Path, tmp_path: Path, arrays: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"test images of .* \(key \w{8}\).*; give runs evaluated on the same images"):
        compare_run(folder, [imported(tmp_path / "b", **arrays)])


def test_shifts_of_other_images_are_not_compared(folder: Path, tmp_path: Path) -> None:
    arrays = made_arrays(images=400) | shifted_arrays(images=400)
    others = imported(tmp_path / "b", **arrays, **{"shift/labels": made_labels(400)})
    (found,) = compare_run(folder, [others]).against
    assert found.clean is not None
    assert found.corrupted is None


def test_a_run_of_ours_is_of_other_images(make_run: MakeRun, folder: Path) -> None:
    run = make_run()
    evaluated(run)
    with pytest.raises(InputError, match="give runs evaluated on the same images"):
        compare_run(folder, [run.folder])


def test_another_file_makes_what_was_fitted_stale(tmp_path: Path) -> None:
    folder = imported(tmp_path / "a", **made_arrays(images=200))
    recalibrate_run(load_any_run(folder))
    evaluate_logits(made_arrays(images=200), folder)
    assert read_evaluated(folder).notes == (), "the same predictions"
    evaluate_logits(made_arrays(images=200, seed=1), folder)
    found = read_evaluated(folder)
    assert found.recalibrated is None
    assert "recalibrated.json was made from other logits than results.json" in found.notes[0]
