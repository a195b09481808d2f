"""A paper's row as a job: its command makes the result that says it is done."""

import sys
from pathlib import Path

import pytest

from counterpoint.cli import main
from counterpoint.experiments.schedules import find_schedule
from counterpoint.launching.job import is_done
from counterpoint.launching.states import job_states
from counterpoint.reproduction.jobs import row_jobs
from counterpoint.reproduction.rows import Folders, RowRun


@pytest.mark.usefixtures("tiny_rows")
def test_the_command_of_a_row_makes_its_result(
    rows_root: Path, folders: Folders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [RowRun("cifar100/single", find_schedule("smoke"), seed) for seed in (0, 3)]
    options = ("--data", str(rows_root), "--device", "cpu")
    first, second = row_jobs(runs, folders, tmp_path / "page.md", options)
    (command,) = second.commands
    monkeypatch.setattr(sys, "argv", ["counterpoint", *command])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert [is_done(job) for job in (first, second)] == [False, True]
    assert [state.kind for state in job_states([first, second], {})] == ["waiting", "finished"]
    assert "cifar100/single/smoke-3" in (tmp_path / "page.md").read_text()
    assert (second.folder / "run.json").exists()
