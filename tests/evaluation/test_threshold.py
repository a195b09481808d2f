"""A run's threshold: what is chosen on which images, what is checked, and what is refused."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.logits import read_about, read_test
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.threshold import threshold_run
from counterpoint.metrics import image_scores, likely_start, lowest_threshold
from counterpoint.metrics.threshold import verdict
from counterpoint.recalibration.apply import Labelled, apply
from counterpoint.recalibration.choose import NONE, HeldOut, choose, fit_held_out
from counterpoint.recalibration.families import families
from counterpoint.records.codec import encode
from counterpoint.records.files import read_evaluated
from counterpoint.records.images import Images
from counterpoint.records.recalibrated import Recalibration
from counterpoint.records.threshold import Checked, Thresholded
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from tests.heard import Heard
from tests.made_runs import (
    CLASSES,
    MakeRun,
    add_suite,
    copied,
    evaluated,
    files_of,
    keep_cells,
    made_logits,
    saved,
    set_about,
)

IMAGES, TARGET = 400, 0.04
EXTRA, EXTRA_IMAGES = "validation-extra", 300
NAMES, SEVERITIES = ("fog", "snow"), (1, 5)
EXTRA_NAMES = ("spatter", "saturate")


def with_more_images(run: Run) -> Run:
    """With 400 validation images, and few cells; not evaluated yet."""
    labels_N = np.arange(IMAGES) % CLASSES
    logits_MNK = made_logits(np.random.default_rng(5), labels_N, run.experiment.members, 3.2)
    write_array(run.folder / "logits" / "labels.npy", labels_N)
    write_array(run.folder / "logits" / "clean.npy", logits_MNK.astype(np.float32))
    set_about(run, clean=encode(Images("digits", "validation", IMAGES)))
    keep_cells(run, "corrupted", NAMES, SEVERITIES)
    return run


@pytest.fixture(scope="module")
def plain(make_run: MakeRun) -> Run:
    """An evaluated run on the split that was not recalibrated."""
    run = with_more_images(make_run(train_on="split"))
    evaluated(run)
    return run


@pytest.fixture(scope="module")
def scaled(make_run: MakeRun) -> Run:
    """One that was, on images under shift too, of which it is far too sure."""
    run = with_more_images(make_run("scaled", train_on="split"))
    add_suite(run, EXTRA, EXTRA_IMAGES)
    keep_cells(run, EXTRA, EXTRA_NAMES, [3])
    for name in EXTRA_NAMES:
        write_array(run.folder / "logits" / EXTRA / f"{name}-3.npy", 4 * saved(run, f"{EXTRA}/{name}-3"))
    evaluated(run)
    recalibrate_run(run, choosing=True)
    return run


def parts() -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the images that are fitted on, and of the others."""
    order = np.random.default_rng(0).permutation(IMAGES)
    return np.sort(order[:100]), np.sort(order[100:])


def clean(run: Run) -> Labelled:
    return Labelled(saved(run, "clean").astype(np.float64), saved(run, "labels"))


def scores(images: Labelled, recalibration: Recalibration) -> tuple[np.ndarray, np.ndarray]:
    found = image_scores(apply(recalibration, images.logits_MNK).ensemble_NK, images.labels_N)
    return found.confidence, found.correct


def by_hand(run: Run, recalibration: Recalibration) -> Any:
    first, second = parts()
    suggested = likely_start(*scores(clean(run).select(first), recalibration), TARGET, 300)
    return lowest_threshold(*scores(clean(run).select(second), recalibration), TARGET, suggested)


def checked_by_hand(run: Run, file: str, labels: str, found: Thresholded) -> Checked:
    images = Labelled(saved(run, file).astype(np.float64), saved(run, labels))
    confidence, correct = scores(images, found.recalibration)
    kept = [right for sure, right in zip(confidence, correct, strict=True) if sure >= found.promise.chosen.threshold]
    wrong = kept.count(0)
    return Checked(len(images), len(kept), wrong, verdict(len(kept), wrong, TARGET))


def test_without_a_recalibration_confidences_are_as_they_are(plain: Run, tmp_path: Path) -> None:
    run = copied(plain, tmp_path / "run")
    before = files_of(run.folder)
    found = threshold_run(run, TARGET)
    assert (found.recalibration_name, found.recalibration, found.fitted_images) == ("none", NONE, 100)
    assert found.promise == by_hand(run, NONE)
    assert 0 < found.promise.chosen.threshold < 1
    assert found.promise.chosen.upper < TARGET <= (found.promise.refused or found.promise.chosen).upper
    assert found.made_from == read_about(run).made_from
    after = files_of(run.folder)
    assert after.keys() - before.keys() == {"threshold.json"}
    assert after.items() >= before.items()
    assert read_evaluated(run.folder).thresholded == found


def test_what_is_kept_under_shift_is_counted(plain: Run) -> None:
    heard = Heard()
    found = threshold_run(plain, TARGET, watcher=heard)
    assert found.test is None, "its clean images are validation images"
    assert found.cells == {
        name: tuple(checked_by_hand(plain, f"{name}-{severity}", "cell-labels", found) for severity in SEVERITIES)
        for name in NAMES
    }
    assert "breaks" in {cell.verdict for cells in found.cells.values() for cell in cells}
    assert heard.counts[-1] == ("checking the promise under shift", 4, 4)


def test_a_recalibrated_run_gets_one_that_is_chosen_and_fitted_on_the_first_part(scaled: Run) -> None:
    found = threshold_run(scaled, TARGET)
    first, _ = parts()
    labels = saved(scaled, f"{EXTRA}/labels")
    extra = {
        name: [Labelled(saved(scaled, f"{EXTRA}/{name}-3").astype(np.float64), labels).select(first[first < 300])]
        for name in EXTRA_NAMES
    }
    held_out, known = HeldOut(clean(scaled).select(first), extra), families(2, shifted=True)
    choice = choose(known, held_out, "both")
    (family,) = (family for family in known if family.name == choice.chosen)
    assert found.recalibration_name == choice.chosen
    assert found.recalibration == fit_held_out(family, held_out, "both")
    assert found.promise == by_hand(scaled, found.recalibration)


def test_no_temperature_and_no_start_saw_the_images_that_decide(scaled: Run, tmp_path: Path) -> None:
    """Other predictions for them, clean and under shift, change nothing but the threshold."""
    run = copied(scaled, tmp_path / "run")
    before = threshold_run(run, 0.3)
    _, second = parts()
    for file in ("clean", *(f"{EXTRA}/{name}-3" for name in EXTRA_NAMES)):
        logits = saved(run, file)
        there = second[second < logits.shape[1]]
        logits[:, there[::3]] = np.roll(logits[:, there[::3]], 1, axis=2)
        write_array(run.folder / "logits" / f"{file}.npy", logits)
    evaluated(run)
    after = threshold_run(run, 0.3 + 1 / 3)
    same = [(one.recalibration_name, one.recalibration, one.fitted_images) for one in (before, after)]
    assert same[0] == same[1]
    assert after.promise.chosen.wrong > before.promise.chosen.wrong + 50


def test_without_images_under_shift_clean_ones_judge(plain: Run, tmp_path: Path) -> None:
    run = copied(plain, tmp_path / "run")
    recalibrate_run(run)
    found = threshold_run(run, TARGET)
    held_out, known = HeldOut(clean(run).select(parts()[0]), {}), families(2, shifted=False)
    assert choose(known, held_out, "clean").chosen == "none", "100 images do not tell"
    assert found.recalibration_name == "before", "but one temperature is what the user asked for"
    assert found.recalibration == fit_held_out(known[0], held_out, "clean")


def test_a_part_that_determines_no_temperature_is_left_as_it_is(plain: Run, tmp_path: Path) -> None:
    run, heard = copied(plain, tmp_path / "run"), Heard()
    recalibrate_run(run)
    logits = saved(run, "clean")
    first, _ = parts()
    logits[:, first] = 5 * np.eye(CLASSES)[saved(run, "labels")[first]]
    write_array(run.folder / "logits" / "clean.npy", logits)
    found = threshold_run(run, 0.3, watcher=heard)
    assert (found.recalibration_name, found.recalibration) == ("none", NONE)
    (note,) = heard.notes
    assert note.startswith(
        "the threshold is for confidences without a recalibration: these 100 images do not determine"
    )


def test_test_images_are_those_of_a_run_that_was_evaluated_on_them(plain: Run, make_run: MakeRun) -> None:
    tested = make_run("all")
    found = read_test(tested, read_about(tested))
    assert found is not None
    assert (found.logits_MNK == saved(tested, "clean")).all()
    assert read_test(plain, read_about(plain)) is None


def test_without_cells_there_is_nothing_to_check(make_run: MakeRun) -> None:
    run = with_more_images(make_run("bare", train_on="split", members=1))
    (run.folder / "logits" / "fog-1.npy").unlink()
    evaluated(run)
    found = threshold_run(run, 0.2)
    assert (found.cells, found.made_from.corrupted) == ({}, None)
    assert read_evaluated(run.folder).thresholded == found


def test_a_damaged_file_of_an_earlier_threshold_is_replaced(plain: Run, tmp_path: Path) -> None:
    run = copied(plain, tmp_path / "run")
    (run.folder / "threshold.json").write_text("{")
    found = threshold_run(run, TARGET)
    assert read_evaluated(run.folder).thresholded == found


def refused(run: Run, target: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        threshold_run(run, target)
    assert not (run.folder / "threshold.json").exists()


def test_what_cannot_be_promised_is_refused(plain: Run, tmp_path: Path) -> None:
    run = copied(plain, tmp_path / "run")
    (run.folder / "threshold.json").unlink(missing_ok=True)
    refused(
        run,
        0.001,
        r"an error below 0.1 % cannot be promised with 300 images \(the other 100 validation images choose which "
        r"threshold is tried first\): .* below 0.999 %",
    )
    refused(run, 1.0, "the target is 1.0; an error must be above 0 and below 1")
    wrong = np.roll(saved(run, "clean"), 1, axis=2)
    write_array(run.folder / "logits" / "clean.npy", wrong)
    refused(run, 0.05, "no threshold can be promised to keep the error below 5 %")
    write_array(run.folder / "logits" / "clean.npy", wrong[:, :3])
    write_array(run.folder / "logits" / "labels.npy", saved(run, "labels")[:3])
    refused(run, 0.05, "there are 3 validation images, and a threshold needs at least 4")


def test_a_run_without_validation_images_is_refused(make_run: MakeRun) -> None:
    run = make_run("all")
    evaluated(run)
    refused(run, 0.05, r"was trained on all images, so none are left to choose a threshold on.*train_on=split")
    split = make_run("split", train_on="split")
    refused(split, 0.05, r"has no results\.json; `counterpoint evaluate .*` makes it")
    set_about(split, clean=encode(Images("digits", "test", 80)))
    evaluated(split)
    refused(split, 0.05, "none are left to choose a threshold on")


def test_other_logits_are_refused(scaled: Run, tmp_path: Path) -> None:
    run = copied(scaled, tmp_path / "run")
    (run.folder / "threshold.json").unlink(missing_ok=True)
    set_about(run, weights="others")
    refused(run, TARGET, r"results\.json was made from other logits than those in the folder")
    evaluated(run)
    refused(
        run, TARGET, r"recalibrated\.json was made from other logits .* `counterpoint recalibrate .*` makes it again"
    )
