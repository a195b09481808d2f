"""`counterpoint compare` as a user meets it, on runs with made-up logits."""

from pathlib import Path

import pytest

from counterpoint.evaluation.condensed import condense, condensed_file, write_condensed
from counterpoint.evaluation.scores import read_scores
from counterpoint.records.compared import Compared
from counterpoint.records.files import read_evaluated, read_record, read_results, write_record
from counterpoint.records.over_seeds import ComparedExperiments
from counterpoint.reproduction.rows import keep_small
from counterpoint.runs.folder import Run
from tests.cli.conftest import Call
from tests.made_runs import MakeRun, evaluated, files_of, keep_cells
from tests.made_trainings import ENSEMBLE, SINGLE, write_trainings


@pytest.fixture(scope="module")
def runs(make_run: MakeRun) -> list[Run]:
    made = [make_run(f"run{seed}", seed=seed) for seed in (1, 2, 3)]
    for run in made:
        (run.folder / "logits" / "fog-1.npy").unlink()  # without cells it is quicker
        evaluated(run)
    return made


def test_each_other_run_gets_a_table(runs: list[Run], call: Call) -> None:
    run, *others = (one.folder for one in runs)
    before = files_of(run)
    ended = call("compare", run, *others)
    assert (ended.status, ended.err) == (0, "")
    assert "digits/quickstart, seed 1 (run1) − digits/quickstart, seed 2 (run2)" in ended.out
    assert "digits/quickstart, seed 3 (run3)" in ended.out
    assert f"written: {run / 'compared.json'}; next: `counterpoint report {run} {others[0]} {others[1]}`" in ended.out
    after = files_of(run)
    assert after.keys() - before.keys() == {"compared.json"}
    assert after.items() >= before.items()
    compared = read_evaluated(run).compared
    assert compared is not None
    assert compared.command == f"counterpoint compare {run} {others[0]} {others[1]}"
    for comparison in compared.against:
        assert comparison.clean is not None
        assert f"{abs(100 * comparison.clean.error.difference):.2f}" in ended.out


def test_a_run_is_not_compared_with_itself(runs: list[Run], call: Call) -> None:
    folder = runs[1].folder
    ended = call("compare", folder, folder)
    assert (ended.status, ended.out) == (2, "")
    assert f"{folder} cannot be compared with itself; name another run" in ended.err
    assert not (folder / "compared.json").exists()


def test_what_is_missing_is_named(runs: list[Run], make_run: MakeRun, call: Call) -> None:
    folder = runs[1].folder
    ended = call("compare", folder)
    assert ended.status == 2
    assert "Missing argument 'others'" in ended.err
    ended = call("compare", folder, "nowhere")
    assert ended.status == 2
    assert "nowhere does not exist" in ended.err
    not_evaluated = make_run().folder
    ended = call("compare", not_evaluated, folder)
    assert ended.status == 2
    assert f"{not_evaluated} has no results.json; `counterpoint evaluate {not_evaluated}` makes it" in ended.err


def test_help_says_what_it_does(call: Call) -> None:
    ended = call("compare", "--help")
    assert ended.status == 0
    for word in ("with others on the same images", "{others}...", "compared.json"):
        assert word in ended.out


def test_rows_are_compared_from_their_results(make_run: MakeRun, call: Call, tmp_path: Path) -> None:
    """As `reproduce` keeps them: small files, and no run."""
    runs = [make_run(seed=seed) for seed in (1, 2)]
    rows = [tmp_path / f"paper-{seed}.json" for seed in (1, 2)]
    for row, run in zip(rows, runs, strict=True):
        keep_cells(run, "corrupted", ["fog", "frost"], [1, 3])
        evaluated(run)
        write_record(row, keep_small(read_results(run.folder / "results.json")))
        write_condensed(condensed_file(row), condense(read_scores(run.folder)))
    expected = call("compare", runs[0].folder, runs[1].folder)
    ended = call("compare", *rows)
    assert (ended.status, ended.err) == (0, "")
    assert "digits/quickstart, seed 1 (paper-1) − digits/quickstart, seed 2 (paper-2)" in ended.out
    differences = expected.out[expected.out.index("Error, points") : expected.out.index("ECE, points")]
    assert differences in ended.out, "the same digits"
    assert "A row's result has condensed scores." in ended.out
    assert "condensed" not in expected.out
    assert "not written to a file; --out FILE keeps the differences" in ended.out
    assert not list(tmp_path.glob("compared*"))
    ended = call("compare", *rows, "--out", tmp_path / "kept.json")
    assert f"written: {tmp_path / 'kept.json'}" in ended.out
    assert read_record(tmp_path / "kept.json", Compared, "").against[0].scores == "condensed"
    condensed_file(rows[1]).unlink()
    ended = call("compare", *rows)
    assert (ended.status, ended.out) == (2, "")
    assert f"{rows[1]} has no paper-2.npz beside it" in ended.err


@pytest.fixture
def experiments(tmp_path: Path) -> tuple[Path, Path]:
    """The folders of two experiments with three seeds each."""
    ours = write_trainings(tmp_path / "ensemble", {0: 0.10, 1: 0.12, 2: 0.17}, name=ENSEMBLE)
    return ours, write_trainings(tmp_path / "single", {0: 0.13, 1: 0.14, 2: 0.19})


def test_experiments_are_compared_over_seeds(experiments: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    ours, other = experiments
    before = files_of(tmp_path)
    ended = call("compare", ours, other / "paper")
    assert (ended.status, ended.err) == (0, "")
    assert f"A: {ENSEMBLE}, seeds 0, 1 and 2 B: {SINGLE}, seeds 0, 1 and 2" in ended.out
    assert "On clean images A has a lower error, NLL and ECE than B, over seeds." in ended.out
    assert "clean: error, % 13.00 ± 3.61 15.33 ± 3.21 −2.33 ± 0.58 −3.77 to −0.90" in ended.out
    assert "These intervals are over seeds, on these images" in ended.out
    assert "not written to a file; --out FILE keeps the differences" in ended.out
    assert files_of(tmp_path) == before
    ended = call("compare", ours, other, "--out", tmp_path / "kept.json")
    assert f"written: {tmp_path / 'kept.json'}" in ended.out
    assert "not written" not in ended.out
    kept = read_record(tmp_path / "kept.json", ComparedExperiments, "")
    assert kept.command == f"counterpoint compare {ours} {other} --out {tmp_path / 'kept.json'}"


def test_each_other_experiment_gets_its_tables(experiments: tuple[Path, Path], call: Call, tmp_path: Path) -> None:
    third = write_trainings(tmp_path / "third", {7: 0.1, 8: 0.2}, "epochs=9")
    ended = call("compare", *experiments, third)
    assert (ended.status, ended.err) == (0, "")
    assert f"B: {SINGLE}, seeds 0, 1 and 2" in ended.out
    assert f"B: {SINGLE}, seeds 7 and 8" in ended.out
    assert ended.out.count("These intervals are over seeds") == 1


@pytest.mark.parametrize("turned", [False, True])
def test_a_run_is_not_compared_with_an_experiment(experiments: tuple[Path, Path], call: Call, turned: bool) -> None:
    places = [experiments[0], experiments[1] / "paper-0.json"]
    ended = call("compare", *(reversed(places) if turned else places))
    assert (ended.status, ended.out) == (2, "")
    assert f"{places[1]} is one run, and a comparison over seeds needs several of each experiment" in ended.err


def test_a_wrong_name_beside_an_experiment_is_named(experiments: tuple[Path, Path], call: Call) -> None:
    ended = call("compare", experiments[0], "nowhere")
    assert (ended.status, ended.out) == (2, "")
    assert "nowhere does not exist, and no run is called nowhere-SEED or nowhere__seed=SEED" in ended.err
