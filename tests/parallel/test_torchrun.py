"""The real torchrun starts the real command."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TORCHRUN = [
    sys.executable,
    "-m",
    "torch.distributed.run",
    "--standalone",
    "--nproc-per-node",
    "2",
    "-m",
    "counterpoint",
]


def start(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*TORCHRUN, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=240
    )


def test_torchrun_trains_in_two_processes(tmp_path: Path) -> None:
    small = ["--set", "steps=3", "--set", "width=2", "--device", "cpu", "--out", str(tmp_path / "run")]
    ended = start("train", "digits/quickstart", *small)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert ended.stdout.count("finished: ") == 1, "one process prints"
    log = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    assert [(record["event"], record["step"]) for record in log] == [("started", 0), ("epoch", 3)]
    assert log[0]["processes"] == 2


def test_an_error_is_told_once() -> None:
    ended = start("report", "nowhere")
    assert ended.returncode != 0
    assert ended.stderr.count("`counterpoint report` is for one process; start it without torchrun") == 1
