"""The states of jobs in the terminal, from results as values."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.cli.terminal.jobs import fold, print_seeds, print_states, unlike_images
from counterpoint.cli.terminal.progress import console
from counterpoint.experiments.schedules import find_schedule
from counterpoint.launching.states import State
from counterpoint.records.images import Images
from counterpoint.reproduction.jobs import row_jobs
from counterpoint.reproduction.rows import Folders, RowRun
from tests.made_rows import row_results


def finished(seed: int, images: int, dataset: str = "cifar10") -> State:
    run = RowRun("cifar10/single", find_schedule("paper"), seed)
    (job,) = row_jobs([run], Folders(Path("runs"), Path("results")), Path("page.md"), ())
    results = row_results(run)
    assert results.corrupted is not None
    corrupted = replace(results.corrupted, images=images)
    return State(job, "finished", "", replace(results, corrupted=corrupted, evaluated_on=Images(dataset, "test", 9)))


def test_runs_on_other_corrupted_images_are_named() -> None:
    (sentence,) = unlike_images([finished(0, 10_000), finished(1, 60), finished(2, 10_000)])
    assert "The figures on -C of cifar10 cannot be compared" in sentence
    assert "10,000 images per cell: cifar10/single/paper-0, cifar10/single/paper-2; regenerated" in sentence
    assert "60 images per cell: cifar10/single/paper-1); `counterpoint evaluate RUN` evaluates" in sentence


def test_other_constants_are_named() -> None:
    state = finished(1, 10_000)
    assert state.results is not None
    assert state.results.corrupted is not None
    source = replace(state.results.corrupted.source, constants="imagenet-c")
    corrupted = replace(state.results.corrupted, source=source)
    (sentence,) = unlike_images(
        [finished(0, 10_000), replace(state, results=replace(state.results, corrupted=corrupted))]
    )
    assert "regenerated (imagenet-c, seed 0" in sentence
    assert sentence.endswith(")"), "no evaluation would make them alike"


def test_alike_are_those_of_one_data_set() -> None:
    waiting = replace(finished(5, 1), kind="waiting", results=None)
    assert not [*unlike_images([finished(0, 450, "digits"), finished(1, 10_000), finished(2, 10_000), waiting])]


def with_figures(state: State, error: float, ece: float, cells_error: float) -> State:
    """The same with these figures: clean error and ECE, and the error under corruption."""
    assert state.results is not None
    assert state.results.corrupted is not None
    clean, corrupted = state.results.clean, state.results.corrupted
    ensemble = dict(corrupted.aggregates.ensemble)
    ensemble["by-corruption"] = replace(ensemble["by-corruption"], error=cells_error, ece_width15=0.25)
    results = replace(
        state.results,
        clean=replace(clean, ensemble=replace(clean.ensemble, error=error, ece_width15=ece)),
        corrupted=replace(corrupted, aggregates=replace(corrupted.aggregates, ensemble=ensemble)),
    )
    return replace(state, results=results, job=replace(state.job, name=f"single__lr=0.1__seed={state.job.seed}"))


def test_the_spread_over_seeds_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    print_seeds([with_figures(finished(i, 60), 0.02 * (i + 1), 0.05, 0.3 + 0.1 * i) for i in range(3)])
    (row,) = (line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("single"))
    assert " ".join(row) == "single__lr=0.1 3 4.00 ± 2.00 5.00 ± 0.00 40.00 ± 10.00 25.00 ± 0.00"


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_names_are_folded_between_settings_and_figures_are_whole(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(console, "_width", columns)  # what it was made with: COLUMNS may have been set then
    named = "digits-quickstart__learning_rate=0.05__seed={}"
    states = [with_figures(finished(i, 60), 0.7222, 0.1439, 0.7849) for i in range(2)]
    states = [replace(state, job=replace(state.job, name=named.format(state.job.seed))) for state in states]
    print_states(states)
    first, second, *_ = re.split(r"(?=digits-quickstart)", capsys.readouterr().out)[1:]
    for run in (first, second):
        assert {"finished", "72.22%", "14.39%", "78.49%", "25.00%"} <= {*run.split()}
    lines = {
        40: ["digits-quickstart__", "learning_rate=0.05__", "seed=0"],
        80: ["digits-quickstart__learning_rate=0.05__", "seed=0"],
        120: [named.format(0)],
    }
    assert [line.split()[0] for line in first.splitlines()] == lines[columns]
    print_seeds(states)
    out = capsys.readouterr().out
    assert all(figure in out for figure in ("72.22 ± 0.00", "14.39 ± 0.00", "78.49 ± 0.00", "25.00 ± 0.00"))
    lines = {
        40: ["digits-quickstart__", "learning_rate=0.05"],
        80: ["digits-quickstart__", "learning_rate=0.05"],
        120: ["digits-quickstart__learning_rate=0.05"],
    }
    assert [line.split()[0] for line in out.splitlines()[-len(lines[columns]) :]] == lines[columns]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (60, ["cifar10-be+sd__policy.augmix.severity=1,2,3,4__seed=0"]),
        (50, ["cifar10-be+sd__policy.augmix.severity=1,2,3,4__", "seed=0"]),
        (38, ["cifar10-be+sd__", "policy.augmix.severity=1,2,3,4__seed=0"]),
        (25, ["cifar10-be+sd__", "policy.augmix.severity=1,", "2,3,4__seed=0"]),
        (5, ["cifar10-be+sd__", "policy.augmix.severity=", "1,2,", "3,4__", "seed=", "0"]),
    ],
)
def test_a_name_is_broken_where_it_can_be_read(width: int, lines: list[str]) -> None:
    assert fold("cifar10-be+sd__policy.augmix.severity=1,2,3,4__seed=0", width).split("\n") == lines


def test_two_experiments_can_be_compared_over_seeds(capsys: pytest.CaptureFixture[str]) -> None:
    def named(state: State, name: str, epochs: int) -> State:
        experiment = replace(state.job.experiment, epochs=epochs)
        return replace(state, job=replace(state.job, name=name, experiment=experiment))

    states = [
        named(finished(seed, 60), f"single__epochs={epochs}{ending}", epochs)
        for epochs in (7, 8)
        for seed, ending in enumerate(("__seed=0", "__seed=1"))
    ]
    print_seeds(states)
    command = "over seeds: `counterpoint compare runs/single__epochs=7 runs/single__epochs=8`"
    assert command in capsys.readouterr().out.splitlines()
    print_seeds(states[:3])
    assert "compare" not in capsys.readouterr().out, "the other has one seed"
    print_seeds([named(state, state.job.name.replace("__seed=", "~"), state.job.experiment.epochs) for state in states])
    assert "compare" not in capsys.readouterr().out, "names that were cut have no seed"


def test_a_spread_is_only_over_runs_on_the_same_images(capsys: pytest.CaptureFixture[str]) -> None:
    print_seeds([finished(0, 60), finished(1, 70, "digits")])
    assert capsys.readouterr().out.split()[-4:] == ["–", "–", "–", "–"]
    print_seeds([finished(0, 60), replace(finished(1, 60), results=None)])
    assert capsys.readouterr().out == ""
