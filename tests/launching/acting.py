"""Jobs whose commands only act: each start ends as the test wants, in a fraction of a second."""

import json
from pathlib import Path

from counterpoint.config import to_dict
from counterpoint.launching.job import Job
from tests.small import TINY

RUN_JSON = json.dumps({"schema": 1, "experiment": to_dict(TINY), "seed": 0, "description": {"total_steps": 3}})
ACT = (
    f"RUN_JSON = {RUN_JSON!r}"
    + """
import os, pathlib, signal, sys, time
folder, starts, *endings = sys.argv[1:]
folder, starts = pathlib.Path(folder), pathlib.Path(starts)
before = len(starts.read_text().split()) if starts.exists() else 0
with starts.open("a") as file:
    file.write(f"{os.getpid()} ")
ending = endings[min(before, len(endings) - 1)]
print("started", flush=True)
if ending == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if ending == "terminate":
    os.kill(os.getpid(), signal.SIGTERM)
if ending == "wait":
    def end(*_):
        starts.with_name("checkpoint").touch()
        sys.exit(143)
    signal.signal(signal.SIGTERM, end)
    starts.with_name("ready").touch()
    time.sleep(60)
if ending == "slow":
    time.sleep(0.6)
if ending in ("wrong", "slow"):
    print("warning: odd\\nerror: no such thing\\n")
    sys.exit(2)
if ending == "raise":
    raise ValueError("odd")
if ending == "done":
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "checkpoints" / "step-000000003.safetensors").touch()
    (folder / "run.json").write_text(RUN_JSON)
    sys.exit()
sys.exit(int(ending))
"""
)


def make_job(out: Path, *endings: str, name: str = "job") -> Job:
    """A job whose first start ends with the first of `endings`, and so on."""
    command = (str(out / name), str(out / f"{name}-starts"), *endings)
    return Job(name, out, TINY, 0, (command,), results=None)


def pids(job: Job) -> list[int]:
    """Of the processes that were started for it."""
    path = job.runs / f"{job.name}-starts"
    return [int(pid) for pid in path.read_text().split()] if path.exists() else []
