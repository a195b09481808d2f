"""The images that are fitted on: validation images alone, of this run or of its twin, and a thousand of each cell."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.held_out import read_held_out, validation_run
from counterpoint.evaluation.logits import read_about
from counterpoint.evaluation.suites import VALIDATION_EXTRA
from counterpoint.records.images import Shift
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from tests.made_runs import CLASSES, IMAGES, MakeRun, add_suite, copied, keep_cells, saved, set_about, shift_of

EXTRA = VALIDATION_EXTRA.name


@pytest.fixture(scope="module")
def run(make_run: MakeRun) -> Run:
    """A run on the split with validation images under two extra corruptions at two severities."""
    run = make_run(train_on="split")
    add_suite(run, EXTRA)
    keep_cells(run, EXTRA, ["spatter", "saturate"], [2, 4])
    return run


@pytest.fixture(scope="module")
def on_all(make_run: MakeRun) -> Run:
    """A run that was trained on all images, whose clean images are those of the test set."""
    return make_run(seed=5)


def shift(run: Run) -> Shift | None:
    return read_about(run).suites.get(EXTRA)


def test_every_set_is_read_in_full_precision(run: Run) -> None:
    held_out = read_held_out(run, shift(run))
    assert (held_out.clean.logits_MNK == saved(run, "clean")).all()
    assert (held_out.clean.labels_N == saved(run, "labels")).all()
    assert list(held_out.shifted) == ["spatter", "saturate"]
    for name, sets in held_out.shifted.items():
        for severity, one in zip([2, 4], sets, strict=True):
            assert one.logits_MNK.dtype == np.float64
            assert (one.logits_MNK == saved(run, f"{EXTRA}/{name}-{severity}")).all()
            assert (one.labels_N == saved(run, f"{EXTRA}/labels")).all()


def test_without_a_suite_there_are_clean_images_alone(run: Run) -> None:
    held_out = read_held_out(run, None)
    assert held_out.shifted == {}
    assert len(held_out.clean) == IMAGES


def test_a_thousand_images_of_a_corrupted_set_are_read(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    add_suite(run, EXTRA, cell_images=1_003)
    for one in [one for sets in read_held_out(run, shift(run)).shifted.values() for one in sets]:
        assert one.logits_MNK.shape == (2, 1_000, CLASSES)
        assert (one.labels_N == np.arange(1_000) % CLASSES).all()
    logits = saved(run, f"{EXTRA}/spatter-3")
    (spatter,) = (sets[2] for name, sets in read_held_out(run, shift(run)).shifted.items() if name == "spatter")
    assert (spatter.logits_MNK == logits[:, :1_000]).all(), "the first"


def test_test_images_are_refused(run: Run, on_all: Run, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="has logits of test images, but a recalibration is fitted on validation images only"
    ):
        read_held_out(on_all, None)
    copy = copied(run, tmp_path / "run")
    set_about(copy, clean={"dataset": "digits", "part": "test", "images": IMAGES})
    with pytest.raises(
        InputError, match="has logits of test images, but a recalibration is fitted on validation images only"
    ):
        read_held_out(copy, shift(copy))


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_of_the_test_set_is_refused(run: Run, tmp_path: Path, name: str) -> None:
    """Even of validation images, and though the files are there."""
    copy = copied(run, tmp_path / "run")
    for severity in (2, 4):
        write_array(copy.folder / "logits" / EXTRA / f"{name}-{severity}.npy", saved(run, f"{EXTRA}/spatter-2"))
    keep_cells(copy, EXTRA, ["spatter", name], [2, 4])
    found = shift(copy)
    assert found is not None
    with pytest.raises(
        InputError,
        match=rf"validation-extra in .*run has validation images under spatter, {name}; a recalibration is fitted "
        "only on validation images under corruptions that are in no test set",
    ):
        read_held_out(copy, found)


def test_test_images_under_extra_corruptions_are_refused(run: Run, tmp_path: Path) -> None:
    copy = copied(run, tmp_path / "run")
    about: Any = {"source": {"kind": "official"}, "images": 20, "part": "test"}
    set_about(copy, **{EXTRA: about | {"corruptions": list(EXTRA_CORRUPTIONS), "severities": [1]}})
    with pytest.raises(
        InputError, match=r"validation-extra in .*run has test images under speckle_noise, .* fitted only on val"
    ):
        read_held_out(copy, shift(copy))


def test_the_suite_itself_may_be_fitted_on(make_run: MakeRun) -> None:
    run = make_run(train_on="split")
    add_suite(run, EXTRA, cell_images=4)
    assert shift(run) == shift_of(VALIDATION_EXTRA, 4)
    held_out = read_held_out(run, shift(run))
    assert tuple(held_out.shifted) == EXTRA_CORRUPTIONS
    assert [len(sets) for sets in held_out.shifted.values()] == [5] * 4


def test_a_run_on_the_split_has_its_own_images_and_one_on_all_needs_its_twin(
    run: Run, on_all: Run, make_run: MakeRun
) -> None:
    assert validation_run(run, None) is run
    twin = make_run("twin", seed=7, train_on="split", name="digits/twin", warmup_steps=3)
    assert validation_run(on_all, twin) is twin


def test_wrong_twins_are_refused(run: Run, on_all: Run, make_run: MakeRun, tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"trained on all images, .* --set train_on=split --out TWIN` .* \(--twin TWIN\)"
    ):
        validation_run(on_all, None)
    with pytest.raises(InputError, match=r"has validation images of its own; leave the twin \(--twin\) out"):
        validation_run(run, run)
    with pytest.raises(InputError, match="was trained on all images too; the twin must have train_on=split"):
        validation_run(on_all, on_all)
    with pytest.raises(InputError, match=r"is not the twin of .* \(epochs: 30 → 3\); they may differ in name, tr"):
        validation_run(on_all, make_run("short", train_on="split", epochs=3))
    without_logits = copied(run, tmp_path / "split")
    (without_logits.folder / "logits" / "clean.npy").unlink()
    with pytest.raises(InputError, match=r"clean\.npy is missing .* `counterpoint evaluate .*split` makes what is"):
        validation_run(on_all, without_logits)
