"""The trainings of an experiment are found by one name, and must differ in their seed alone."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.records.files import write_record
from counterpoint.records.results import Imported
from counterpoint.records.trainings import find_trainings, read_trainings
from tests.made_trainings import trained, write_trainings


def test_a_folder_names_the_runs_in_it(tmp_path: Path) -> None:
    folder = write_trainings(tmp_path / "single", {10: 0.1, 2: 0.15})
    (folder / "paper-2.npz").touch()
    (folder / "notes.json").write_text("{}")  # without a seed in its name it is no row
    write_trainings(folder / "test", {0: 0.1})  # another experiment, as results/ has it
    found = read_trainings(folder)
    assert found.seeds == (2, 10), "by ascending seed"
    assert [path.name for path in found.runs.values()] == ["paper-2.json", "paper-10.json"]
    assert [results.clean.ensemble.error for results in found.results.values()] == [0.15, 0.1]


@pytest.mark.parametrize("name", ["paper", "paper-"])
def test_a_name_without_the_seed_names_rows(tmp_path: Path, name: str) -> None:
    """A shell completes it with the hyphen."""
    folder = write_trainings(tmp_path, {0: 0.1, 1: 0.2})
    write_record(folder / "paperback-0.json", trained(0, 0.1))
    write_record(folder / "paper-0-0.json", trained(0, 0.1))
    assert read_trainings(folder / name).seeds == (0, 1)


@pytest.mark.parametrize("name", ["single__epochs=4", "single__epochs=4__seed="])
def test_a_name_without_the_seed_names_the_runs_of_a_sweep(tmp_path: Path, name: str) -> None:
    for seed in (0, 1):
        for epochs in (4, 42):
            run = tmp_path / f"single__epochs={epochs}__seed={seed}"
            run.mkdir()
            write_record(run / "results.json", trained(seed, 0.1, f"epochs={epochs}"))
    found = read_trainings(tmp_path / name)
    assert [path.name for path in found.runs.values()] == ["single__epochs=4__seed=0", "single__epochs=4__seed=1"]


def test_runs_that_are_not_evaluated_are_left_out_and_known(tmp_path: Path) -> None:
    write_trainings(tmp_path, {0: 0.1})
    for seed in (1, 2):
        (tmp_path / f"paper-{seed}").mkdir()
    (tmp_path / "paper-1" / "run.json").touch()
    for place in (tmp_path, tmp_path / "paper"):
        found = read_trainings(place)
        assert found.seeds == (0,)
        assert found.without_results == (tmp_path / "paper-1",), "the folder without a run is none"
    (tmp_path / "paper-0.json").unlink()
    with pytest.raises(InputError, match="none of its 1 runs is evaluated yet; `counterpoint evaluate RUN` does it"):
        read_trainings(tmp_path)


def test_a_run_is_no_name_for_several(tmp_path: Path) -> None:
    folder = write_trainings(tmp_path, {0: 0.1, 1: 0.1})
    run = tmp_path / "run"
    shutil.copytree(write_trainings(tmp_path / "copy", {0: 0.1}), run)
    (run / "run.json").touch()
    for one in (folder / "paper-0.json", run):
        assert find_trainings(one) == []
        with pytest.raises(InputError, match=f"{one.name} is one run, and a comparison over seeds needs several"):
            read_trainings(one)


def test_nothing_is_found(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="empty holds no runs; give the folder of an experiment's runs"):
        read_trainings(tmp_path / "empty")
    for place in (tmp_path / "paper", tmp_path / "nowhere" / "paper"):
        with pytest.raises(InputError, match="paper does not exist, and no run is called paper-SEED or paper__seed="):
            read_trainings(place)


def test_runs_of_other_settings_are_refused_with_names_to_give(tmp_path: Path) -> None:
    for seed in (0, 1):
        for epochs in (50, 250):
            run = tmp_path / f"single__epochs={epochs}__seed={seed}"
            run.mkdir()
            write_record(run / "results.json", trained(seed, 0.1, f"epochs={epochs}", f"batch_size={epochs}"))
    with pytest.raises(
        InputError,
        match=r"single__epochs=250__seed=0 and .*single__epochs=50__seed=0 differ in more than the seed: in epochs, "
        r"batch_size\. Name the runs of one experiment: .*/single__epochs=250 and .*/single__epochs=50 are such names",
    ):
        read_trainings(tmp_path)


def test_rows_of_other_settings_with_one_name_are_refused(tmp_path: Path) -> None:
    write_trainings(tmp_path, {0: 0.1})
    write_trainings(tmp_path, {1: 0.1}, "policy.augmix.severity=3")
    with pytest.raises(InputError, match=r"in policy\.augmix\. Give runs of one experiment; those of other settings"):
        read_trainings(tmp_path / "paper")


def test_another_name_is_no_other_setting(tmp_path: Path) -> None:
    """As the hash of a configuration leaves it out."""
    write_trainings(tmp_path, {0: 0.1})
    write_trainings(tmp_path, {1: 0.1}, "name=again")
    assert read_trainings(tmp_path).seeds == (0, 1)


def test_a_seed_counts_once(tmp_path: Path) -> None:
    write_trainings(tmp_path, {0: 0.1, 1: 0.1})
    shutil.copy(tmp_path / "paper-1.json", tmp_path / "paper-2.json")
    with pytest.raises(InputError, match=r"paper-1\.json and .*paper-2\.json both have seed 1; move one of them away"):
        read_trainings(tmp_path)


def test_predictions_from_elsewhere_have_no_seed(tmp_path: Path) -> None:
    write_trainings(tmp_path, {0: 0.1})
    given = Imported(sha256="0123", command="counterpoint evaluate", finished="now")
    write_record(tmp_path / "paper-1.json", replace(trained(1, 0.1), run=None, imported=given))
    with pytest.raises(InputError, match=r"paper-1\.json has predictions from elsewhere, whose seed is not known"):
        read_trainings(tmp_path)


def test_a_damaged_file_is_not_left_out(tmp_path: Path) -> None:
    write_trainings(tmp_path, {0: 0.1, 1: 0.1})
    (tmp_path / "paper-1.json").write_text("{")
    with pytest.raises(InputError, match=r"paper-1\.json is damaged or is not JSON"):
        read_trainings(tmp_path)
