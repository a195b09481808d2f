"""The states of jobs, as their files and the queue tell them."""

from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.experiments.schedules import find_schedule
from counterpoint.launching.job import Job
from counterpoint.launching.states import State, job_states
from counterpoint.reproduction.jobs import row_jobs
from counterpoint.reproduction.rows import Folders, RowRun, write_result
from counterpoint.storage.files import write_json
from counterpoint.storage.locks import in_turn
from tests.made_rows import begin_row, row_results

RUN = RowRun("cifar10/single", find_schedule("short"), 0)


@pytest.fixture
def job(folders: Folders) -> Job:
    (job,) = row_jobs([RUN], folders, Path("page.md"), ())
    return job


def told(state: State) -> tuple[str, str]:
    return state.kind, state.detail


def test_from_waiting_to_finished(job: Job, folders: Folders) -> None:
    assert told(*job_states([job], {})) == ("waiting", "")
    with in_turn(job.desk, lambda: None):
        assert told(*job_states([job], {})) == ("running", "starting")
    begin_row(folders, RUN, epoch=3)
    with in_turn(job.desk, lambda: None):
        assert told(*job_states([job], {})) == ("running", "epoch 3 of 40")
    assert told(*job_states([job], {})) == ("interrupted", "epoch 3 of 40")
    write_result(folders.results, RUN, row_results(RUN))
    (state,) = job_states([job], {})
    assert told(state) == ("finished", "")
    assert state.results is not None
    assert state.results.clean.ensemble.error == 0.0421


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("PENDING", ("queued", "pending, epoch 2 of 40")),
        ("REQUEUED", ("queued", "requeued, epoch 2 of 40")),
        ("RUNNING", ("running", "epoch 2 of 40")),
        ("TIMEOUT", ("failed", "the cluster says TIMEOUT")),
        ("COMPLETED", ("interrupted", "epoch 2 of 40")),
    ],
)
def test_the_queue_has_a_word_in_it(job: Job, folders: Folders, word: str, expected: tuple[str, str]) -> None:
    begin_row(folders, RUN, epoch=2)
    (state,) = job_states([job], {job.name: word, "another": "FAILED"})
    assert told(state) == expected


def test_a_failure_is_told_until_the_job_is_in_the_queue_again(job: Job) -> None:
    write_json(job.failure, {"reason": "no such thing"})
    assert told(*job_states([job], {})) == ("failed", "no such thing")
    assert told(*job_states([job], {job.name: "FAILED"})) == ("failed", "no such thing")
    assert told(*job_states([job], {job.name: "PENDING"})) == ("queued", "pending")


def test_results_of_other_settings_do_not_count(job: Job, folders: Folders) -> None:
    write_result(folders.results, RUN, row_results(RUN))
    other = replace(job, experiment=replace(job.experiment, epochs=7))
    assert [state.kind for state in job_states([job, other, replace(job, seed=1)], {})] == [
        "finished",
        "waiting",
        "waiting",
    ]


def test_a_file_that_cannot_be_read_fails_its_run_alone(job: Job, folders: Folders) -> None:
    assert job.results is not None
    write_result(folders.results, RUN, row_results(RUN))
    job.results.write_text("{")
    damaged, fine = job_states([job, replace(job, results=folders.results / "none.json")], {})
    assert damaged.kind == "failed"
    assert str(job.results) in damaged.detail
    assert fine.kind == "waiting"
    job.results.unlink()
    job.failure.parent.mkdir(parents=True)
    for text in ("[]", "{", "{}", "null"):
        job.failure.write_text(text)
        (state,) = job_states([job], {})
        assert state.kind == "failed"
        assert str(job.failure) in state.detail
