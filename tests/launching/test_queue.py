"""What squeue and sacct say, told by scripts of these names."""

import sys
from pathlib import Path

import pytest

from counterpoint.launching.job import is_missing
from counterpoint.launching.queue import parse_states, queue_states
from counterpoint.launching.states import job_states
from counterpoint.storage.files import write_json
from tests.launching.acting import make_job

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for a shell")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def write_script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def test_the_lines_of_both_commands_are_read() -> None:
    assert parse_states("7|RUNNING\n8_3|PENDING\n\n") == {"7": "RUNNING", "8_3": "PENDING"}
    assert parse_states("9|CANCELLED by 1000\n10|CANCELLED+\nno line of it\n") == {"9": "CANCELLED", "10": "CANCELLED"}


def test_jobs_that_left_the_queue_are_looked_up(tmp_path: Path, path: Path) -> None:
    jobs = [make_job(tmp_path, "done", name=name) for name in ("one", "two", "three", "four")]
    for number, job in enumerate(jobs[:3], 1):
        write_json(job.submission, {"id": str(number)})
    write_script(path / "squeue", "echo '1|RUNNING'; echo '77|PENDING'")
    assert queue_states(jobs) == {"one": "RUNNING"}, "without accounts nothing more is known"
    write_script(path / "sacct", 'case "$*" in *--jobs=1,2,3*) echo "2|TIMEOUT"; echo "1|PENDING";; esac')
    assert queue_states(jobs) == {"one": "RUNNING", "two": "TIMEOUT"}, "squeue is asked in the first place"


def test_a_job_whose_number_cannot_be_read_is_named_and_the_others_are_looked_up(tmp_path: Path, path: Path) -> None:
    jobs = [make_job(tmp_path, "done", name=name) for name in ("one", "two")]
    write_json(jobs[0].submission, {})
    write_json(jobs[1].submission, {"id": "2"})
    write_script(path / "squeue", "echo '2|RUNNING'")
    damaged, fine = job_states(jobs, queue_states(jobs))
    assert (damaged.kind, fine.kind) == ("failed", "running")
    assert f"{jobs[0].submission} has no 'id'; remove it" in damaged.detail
    assert not is_missing(jobs[0]), "it may still be in the queue"


def test_without_a_cluster_nothing_is_known(tmp_path: Path, path: Path) -> None:
    job = make_job(tmp_path, "done")
    write_json(job.submission, {"id": "1"})
    assert list(path.iterdir()) == []
    assert queue_states([job]) == {}
