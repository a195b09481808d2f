"""The states of jobs in the terminal, from results as values."""

from dataclasses import replace
from pathlib import Path

from counterpoint.cli.terminal.jobs import unlike_images
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
    assert "60 images per cell: cifar10/single/paper-1)" in sentence


def test_alike_are_those_of_one_data_set() -> None:
    waiting = replace(finished(5, 1), kind="waiting", results=None)
    assert not [*unlike_images([finished(0, 450, "digits"), finished(1, 10_000), finished(2, 10_000), waiting])]
