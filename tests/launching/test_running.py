"""What becomes of a job whose processes end well, badly, or from outside."""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import FrameType

import pytest

from counterpoint.launching.job import read_failure
from counterpoint.launching.local import run_here
from counterpoint.launching.running import RESTARTS, JobRunner, program
from counterpoint.launching.states import job_states
from counterpoint.storage.files import read_json
from counterpoint.storage.locks import in_turn, locked
from tests.heard import Heard
from tests.launching.acting import RUN_JSON, make_job, pids

pytestmark = [
    pytest.mark.usefixtures("acting"),
    pytest.mark.skipif(sys.platform == "win32", reason="Windows has other signals"),
]


@pytest.mark.parametrize("ending", ["kill", "terminate", "143", "130"])
def test_a_process_that_is_ended_from_outside_is_started_again(tmp_path: Path, ending: str) -> None:
    job = make_job(tmp_path, ending, "done")
    assert JobRunner(job).run() == "finished"
    assert len(pids(job)) == 2
    assert not job.failure.exists()
    assert job.log.read_text().count("started") == 2


def test_a_finished_job_is_not_run_again(tmp_path: Path) -> None:
    job = make_job(tmp_path, "done")
    for _ in range(2):
        assert JobRunner(job).run() == "finished"
    assert len(pids(job)) == 1


def test_a_job_that_is_killed_again_and_again_fails(tmp_path: Path) -> None:
    job = make_job(tmp_path, "kill")
    assert JobRunner(job).run() == "failed"
    assert len(pids(job)) == RESTARTS + 1
    assert read_json(job.failure)["reason"] == (
        "it was ended from outside 4 times (SIGKILL, SIGKILL, SIGKILL, SIGKILL); the system does that when memory is "
        "short"
    )


@pytest.mark.parametrize(
    ("ending", "reason"),
    [
        ("wrong", "no such thing"),
        ("raise", "ValueError: odd"),
        ("7", "started"),
        ("0", "its commands ended without an error, but their results are missing"),
    ],
)
def test_an_error_is_not_tried_again_before_it_is_asked_for(tmp_path: Path, ending: str, reason: str) -> None:
    job = make_job(tmp_path, ending, "done")
    assert JobRunner(job).run() == "failed"
    assert read_json(job.failure)["reason"] == reason
    assert len(pids(job)) == 1
    assert JobRunner(job).run() == "finished"
    assert not job.failure.exists()


def test_an_error_after_a_request_to_end_is_no_failure(tmp_path: Path) -> None:
    job = make_job(tmp_path, "wrong", "done")
    runner = JobRunner(job)
    runner.warned = True
    assert runner.run() == "finished"


def test_one_failing_job_does_not_stop_the_others(tmp_path: Path) -> None:
    jobs = [make_job(tmp_path, ending, name=ending) for ending in ("done", "wrong", "kill")]
    jobs.insert(1, make_job(tmp_path, "kill", "done", name="preempted"))
    run_here(jobs)
    states = job_states(jobs, {})
    assert [state.kind for state in states] == ["finished", "finished", "failed", "failed"]


def test_an_evaluation_and_a_failure_are_told_when_they_happen(tmp_path: Path) -> None:
    job, heard = make_job(tmp_path, "done", "slow"), Heard()
    assert JobRunner(job).run() == "finished"
    run_here([replace(job, results=job.folder / "results.json")], watcher=heard)
    assert heard.notes[1:] == ["job is trained, and is evaluated now", "job: failed: no such thing"]


def link_out(folder: Path) -> None:
    (folder / "run.json").write_text(RUN_JSON)
    (folder / "logits").symlink_to(folder.parent)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "results.json is damaged": lambda folder: (folder / "results.json").write_text("{"),
    "run.json is damaged": lambda folder: (folder / "run.json").write_text("{"),
    "run.json is damaged, or another version": lambda folder: (folder / "run.json").write_text('{"schema": 9}'),
    "run.json cannot be read": lambda folder: (folder / "run.json").mkdir(),
    "is not empty and holds no run": lambda folder: (folder / "checkpoints").mkdir(),
    "is a link out of its folder": link_out,
}


@pytest.mark.parametrize("words", DAMAGE)
def test_a_run_that_cannot_be_read_fails_alone_and_is_not_begun_again(tmp_path: Path, words: str) -> None:
    damaged, other = make_job(tmp_path, "done", name="a"), make_job(tmp_path, "done", name="b")
    damaged = replace(damaged, results=damaged.folder / "results.json")
    damaged.folder.mkdir()
    if words.startswith("results"):
        (damaged.folder / "run.json").write_text(RUN_JSON)
    DAMAGE[words](damaged.folder)
    before = sorted(damaged.folder.iterdir())
    run_here([damaged, other])
    states = job_states([damaged, other], {})
    assert [state.kind for state in states] == ["failed", "finished"]
    assert words in states[0].detail
    assert not pids(damaged)
    assert sorted(damaged.folder.iterdir()) == before


@pytest.mark.parametrize("damage", [lambda log: log.write_text("{\n{\n"), lambda log: log.mkdir()])
def test_a_log_that_cannot_be_read_is_left_to_the_command_to_name(
    tmp_path: Path, damage: Callable[[Path], object]
) -> None:
    damaged, other = make_job(tmp_path, "slow", name="a"), make_job(tmp_path, "done", name="b")
    damaged.folder.mkdir()
    (damaged.folder / "run.json").write_text(RUN_JSON)
    damage(damaged.folder / "log.jsonl")
    run_here([damaged, other])
    assert read_failure(damaged) == "no such thing"
    assert [state.kind for state in job_states([damaged, other], {})] == ["failed", "finished"]


def test_a_stop_ends_the_process_with_a_checkpoint_and_starts_no_other(tmp_path: Path) -> None:
    jobs, heard = [make_job(tmp_path, "wait", name=name) for name in ("one", "two")], Heard()
    run_here(jobs, should_stop=(tmp_path / "ready").exists, watcher=heard)
    assert (tmp_path / "checkpoint").exists()
    assert [len(pids(job)) for job in jobs] == [1, 0]
    assert not jobs[0].failure.exists()
    assert heard.notes[-1] == "one: stopped"


def test_a_training_that_outlived_its_sweep_is_left_alone(tmp_path: Path) -> None:
    jobs, heard = [make_job(tmp_path, "done", name=name) for name in ("one", "two")], Heard()
    with locked(jobs[0].folder, "not said: it is the first"):
        assert [state.kind for state in job_states(jobs, {})] == ["running", "waiting"]
        run_here(jobs, watcher=heard)
    assert heard.notes[0] == "1 of 2: one is run by another process"
    assert [len(pids(job)) for job in jobs] == [0, 1]
    run_here(jobs)
    assert [state.kind for state in job_states(jobs, {})] == ["finished", "finished"]


def test_what_another_process_runs_is_left_to_it(tmp_path: Path) -> None:
    jobs, heard = [make_job(tmp_path, "done", name=name) for name in ("one", "two")], Heard()
    with in_turn(jobs[0].desk, lambda: None):
        assert [state.kind for state in job_states(jobs, {})] == ["running", "waiting"]
        run_here(jobs, watcher=heard)
    assert heard.notes[0] == "1 of 2: one is run by another process"
    assert [len(pids(job)) for job in jobs] == [0, 1]


def test_several_processes_are_started_by_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    counterpoint = (sys.executable, "-m", "counterpoint")
    assert program(1) == counterpoint
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=4")
    assert program(4) == (*torchrun, *counterpoint[1:])


class RequeuedError(Exception):
    pass


def test_a_signal_of_the_cluster_reaches_the_process_as_a_request_to_end(tmp_path: Path) -> None:
    """SIGUSR2 comes to all processes of a cluster's job. It must not end the one that trains, and then it is ended."""
    job = make_job(tmp_path, "wait")
    runner = JobRunner(job)

    def requeue(*_: int | FrameType | None) -> None:
        runner.end(seconds=30)
        raise RequeuedError

    def preempt() -> None:
        if (tmp_path / "ready").exists():
            os.kill(pids(job)[0], signal.SIGUSR2)
            os.kill(os.getpid(), signal.SIGUSR2)

    before = signal.signal(signal.SIGUSR2, requeue)
    try:
        with pytest.raises(RequeuedError):
            runner.run(watch=preempt)
    finally:
        signal.signal(signal.SIGUSR2, before)
    assert (tmp_path / "checkpoint").exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pids(job)[0], 0)
