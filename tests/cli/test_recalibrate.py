"""`counterpoint recalibrate` as a user meets it, on runs with made-up logits."""

import math

import numpy as np
import pytest

from counterpoint.records.files import read_evaluated
from counterpoint.records.recalibrated import Recalibrated
from counterpoint.report.recalibrations.words import quoted
from counterpoint.runs.folder import Run
from counterpoint.storage.arrays import write_array
from tests.cli.conftest import Call
from tests.made_runs import CLASSES, MakeRun, add_suite, evaluated, files_of, keep_cells, saved


def with_extra(run: Run) -> Run:
    """With validation images under two extra corruptions, and few cells of the test images."""
    add_suite(run, "validation-extra", 40)
    keep_cells(run, "validation-extra", ["spatter", "saturate"], [3])
    keep_cells(run, "corrupted", ["fog", "snow"], [1, 3])
    return run


@pytest.fixture(scope="module")
def runs(make_run: MakeRun) -> tuple[Run, Run]:
    """A run on all images and its twin on the split, both evaluated."""
    run, twin = make_run(seed=1), with_extra(make_run("twin", seed=2, train_on="split"))
    (run.folder / "logits" / "fog-1.npy").unlink()  # without cells it is quicker
    evaluated(run)
    evaluated(twin)
    return run, twin


def recalibrated_of(run: Run) -> Recalibrated:
    recalibrated = read_evaluated(run.folder).recalibrated
    assert recalibrated is not None
    return recalibrated


def test_a_run_on_the_split_has_images_of_its_own(runs: tuple[Run, Run], call: Call) -> None:
    _, twin = runs
    before = files_of(twin.folder)
    ended = call("recalibrate", twin.folder)
    assert (ended.status, ended.err) == (0, "")
    assert "cross-fitted on two seeded halves" in ended.out
    assert "no recalibration" in ended.out  # what the others are to be compared with
    used = f"The commands predict, serve and export use {quoted(recalibrated_of(twin).best, several=True)}: it has"
    assert used in " ".join(ended.out.split())
    assert f"written: {twin.folder / 'recalibrated.json'}; next: `counterpoint report {twin.folder}`, or" in ended.out
    after = files_of(twin.folder)
    assert after.keys() - before.keys() == {"recalibrated.json"}
    assert after.items() >= before.items()
    recalibrated = recalibrated_of(twin)
    assert recalibrated.command == f"counterpoint recalibrate {twin.folder}"
    assert (recalibrated.care, recalibrated.choice) == ("both", None)
    assert len(recalibrated.ways) == 9
    for scaled in recalibrated.ways.values():
        if not scaled.recalibration.slopes:
            assert f"{math.exp(scaled.recalibration.log_temperatures[0].value):.2f}" in ended.out


def test_one_is_chosen_and_what_the_user_cares_for_is_kept(runs: tuple[Run, Run], call: Call) -> None:
    _, twin = runs
    ended = call("recalibrate", twin.folder, "--choose", "--care", "shift")
    assert (ended.status, ended.err) == (0, "")
    recalibrated = recalibrated_of(twin)
    assert recalibrated.choice is not None
    assert recalibrated.care == recalibrated.choice.care == "shift"
    for words in ("Chosen: ", "(chosen)", "care: shift"):
        assert words in ended.out
    assert recalibrated.command == f"counterpoint recalibrate {twin.folder} --choose --care shift"


def test_a_run_on_all_images_needs_its_twin(runs: tuple[Run, Run], call: Call) -> None:
    run, twin = runs
    ended = call("recalibrate", run.folder)
    assert ended.status == 2
    assert "was trained on all images" in ended.err
    assert "name it as the twin (--twin TWIN)" in ended.err
    assert not (run.folder / "recalibrated.json").exists()
    ended = call("recalibrate", run.folder, "--twin", twin.folder, "--choose")
    assert ended.status == 0
    assert "parameters of the twin run digits/quickstart, seed 2" in ended.out
    recalibrated = recalibrated_of(run)
    assert recalibrated.fitted_on.run == "digits/quickstart, seed 2"
    assert recalibrated.choice is not None


def test_choosing_without_images_under_shift_says_which_command_makes_them(make_run: MakeRun, call: Call) -> None:
    run = make_run(train_on="split")
    (run.folder / "logits" / "fog-1.npy").unlink()
    evaluated(run)
    ended = call("recalibrate", run.folder, "--choose")
    assert (ended.status, ended.out) == (2, "")
    assert f"`counterpoint evaluate {run.folder} --sets validation-extra` makes them" in ended.err
    assert not (run.folder / "recalibrated.json").exists()
    assert call("recalibrate", run.folder).status == 0, "without a choice"
    assert list(recalibrated_of(run).ways) == ["before", "after", "per-member"]


def test_a_word_that_is_no_care_is_refused_before_anything_is_read(call: Call) -> None:
    ended = call("recalibrate", "nowhere", "--choose", "--care", "shifted")
    assert (ended.status, ended.out) == (2, "")
    assert "unknown --care 'shifted'; did you mean 'shift'? (known: clean, both, shift)" in ended.err


def test_what_is_left_out_is_told(make_run: MakeRun, call: Call) -> None:
    run = with_extra(make_run(train_on="split"))
    clean = saved(run, "clean")
    clean[1] = 8 * np.eye(CLASSES)[saved(run, "labels")]
    write_array(run.folder / "logits" / "clean.npy", clean)
    evaluated(run)
    ended = call("recalibrate", run.folder)
    assert ended.status == 0
    assert "per-member" not in recalibrated_of(run).ways
    assert "per-member is left out: these 80 images do not determine a temperature" in ended.out + ended.err


def test_what_is_no_run_or_was_not_evaluated_is_refused(make_run: MakeRun, call: Call) -> None:
    ended = call("recalibrate", "nowhere")
    assert (ended.status, ended.out) == (2, "")
    assert "nowhere does not exist" in ended.err
    folder = make_run(train_on="split").folder
    ended = call("recalibrate", folder)
    assert ended.status == 2
    assert f"{folder} has no results.json; `counterpoint evaluate {folder}` makes it" in ended.err


def test_help_says_what_it_does(call: Call) -> None:
    ended = call("recalibrate", "--help")
    assert ended.status == 0
    for word in ("Correct the confidence of an evaluated run", "validation images", "never on test images", "--twin"):
        assert word in ended.out
    for word in ("--choose", "validation-extra", "--care", "clean, shift or both", "recalibrated.json"):
        assert word in ended.out
