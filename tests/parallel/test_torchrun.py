"""The real torchrun starts the real command, and loses a process."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from counterpoint.cli import main

ROOT = Path(__file__).parents[2]
COMMAND = ["-m", "counterpoint"]
TORCHRUN = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
DYING = """
import os, signal
from counterpoint.cli import main
from counterpoint.training import loop

update, loop.CHECKPOINT_SECONDS = loop.update, 0

def die_or_update(engine, batch, total):
    if os.environ["RANK"] == "1" and engine.state.step == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    update(engine, batch, total)

loop.update = die_or_update
main()
"""
LEAVING = """
import sys
from pathlib import Path
from counterpoint.parallel.group import joined
from counterpoint.parallel.world import this_world

with joined(this_world()):
    import torch.distributed.nn  # as torch.compile does
left = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
sys.exit(any("gloo" in name for name in left))
"""


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    return python(*TORCHRUN, *COMMAND, *arguments)


def test_torchrun_trains_in_two_processes(tmp_path: Path) -> None:
    small = ["--set", "steps=3", "--set", "width=2", "--device", "cpu", "--out", str(tmp_path / "run")]
    ended = start("train", "digits/quickstart", *small)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("finished: ") == 1, "one process prints"
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [(record["event"], record["step"]) for record in log] == [("started", 0), ("epoch", 3)]
    assert log[0]["processes"] == 2


@pytest.mark.skipif(sys.platform != "linux", reason="threads are listed in /proc")
def test_no_thread_of_the_group_is_left(tmp_path: Path) -> None:
    (tmp_path / "leaving.py").write_text(LEAVING)
    ended = python(*TORCHRUN, str(tmp_path / "leaving.py"))
    assert ended.returncode == 0, ended.stderr


def test_an_error_is_told_once() -> None:
    ended = start("report", "nowhere")
    assert ended.returncode != 0
    assert ended.stderr.count("`counterpoint report` runs in one process; start it without torchrun") == 1


def test_a_process_that_is_killed_ends_the_run_which_goes_on_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    train = ["train", "digits/quickstart", "--set", "steps=9", "--set", "batch_size=300", "--set", "width=2"]
    train += ["--set", "policy.augmix=none", "--set", "num_members=2"]
    train += ["--set", "train_on=all", "--device", "cpu", "--out", str(tmp_path / "run")]
    killed = python(*TORCHRUN, str(tmp_path / "dying.py"), *train)
    assert killed.returncode != 0
    assert "another process of this run has ended or does not answer" in killed.stderr
    monkeypatch.setattr(sys, "argv", ["counterpoint", *train])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    starts = [(record["step"], record.get("processes", 1)) for record in log if record["event"] == "started"]
    assert starts == [(0, 2), (5, 1)]
