"""`counterpoint recalibrate` as a user meets it, on runs with made-up logits."""

import pytest

from counterpoint.records.files import read_evaluated
from counterpoint.runs.folder import Run
from tests.cli.conftest import Call
from tests.made_runs import MakeRun, evaluated, files_of


@pytest.fixture(scope="module")
def runs(make_run: MakeRun) -> tuple[Run, Run]:
    """A run on all images and its twin on the split, both evaluated."""
    run, twin = make_run(seed=1), make_run("twin", seed=2, train_on="split")
    for made in (run, twin):
        (made.folder / "logits" / "fog-1.npy").unlink()  # without cells it is quicker
        evaluated(made)
    return run, twin


def test_a_run_on_the_split_has_images_of_its_own(runs: tuple[Run, Run], call: Call) -> None:
    _, twin = runs
    before = files_of(twin.folder)
    ended = call("recalibrate", twin.folder)
    assert (ended.status, ended.err) == (0, "")
    assert "cross-fitted on two seeded halves" in ended.out
    assert f"written: {twin.folder / 'recalibrated.json'}; now `counterpoint report {twin.folder}`" in ended.out
    after = files_of(twin.folder)
    assert after.keys() - before.keys() == {"recalibrated.json"}
    assert after.items() >= before.items()
    recalibrated = read_evaluated(twin.folder).recalibrated
    assert recalibrated is not None
    assert recalibrated.command == f"counterpoint recalibrate {twin.folder}"
    for scaled in recalibrated.ways.values():
        assert f"{scaled.temperatures[0]:.2f}" in ended.out


def test_a_run_on_all_images_needs_its_twin(runs: tuple[Run, Run], call: Call) -> None:
    run, twin = runs
    ended = call("recalibrate", run.folder)
    assert ended.status == 2
    assert "was trained on all images" in ended.err
    assert "add --twin TWIN" in ended.err
    assert not (run.folder / "recalibrated.json").exists()
    ended = call("recalibrate", run.folder, "--twin", twin.folder)
    assert ended.status == 0
    assert "temperature of the twin run digits/quickstart, seed 2" in ended.out
    recalibrated = read_evaluated(run.folder).recalibrated
    assert recalibrated is not None
    assert recalibrated.fitted_on.run == "digits/quickstart, seed 2"


def test_what_is_no_run_or_was_not_evaluated_is_refused(make_run: MakeRun, call: Call) -> None:
    ended = call("recalibrate", "nowhere")
    assert (ended.status, ended.out) == (2, "")
    assert "nowhere holds no run" in ended.err
    folder = make_run(train_on="split").folder
    ended = call("recalibrate", folder)
    assert ended.status == 2
    assert f"{folder} has no results.json; `counterpoint evaluate {folder}` makes it" in ended.err


def test_help_says_what_it_does(call: Call) -> None:
    ended = call("recalibrate", "--help")
    assert ended.status == 0
    for word in ("Fit temperatures", "validation images", "--twin", "recalibrated.json"):
        assert word in ended.out
