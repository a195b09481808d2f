"""A tiny training that is killed for real at chosen places, in processes forked from one that has imported everything.

    python -m tests.training.tiny_run PLANS

PLANS is an object in JSON of FOLDER: KILLS, and KILLS is a list of [PLACE, COUNT]. Each life goes on with the run in
FOLDER and kills itself there; the last life finishes it. What the kills of a run left is printed as a line of JSON.

PLACE is `update` (after the COUNT-th update), `write` (when half of a checkpoint is written), `fsync` or `replace`
(before a checkpoint's COUNT-th sync or rename).
Just before the kill, the place and what the checkpoint folder holds are written to FOLDER.killed.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import counterpoint.training.loop
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet
from counterpoint.training.loop import Options, train
from tests.small import TINY, noise_data

Plans = dict[str, list[tuple[str, int]]]
"""The folder of each run, and where it is killed, in turn."""


def kill_at(place: str, count: int, folder: Path) -> None:
    """Wrap the function called at `place` so that its COUNT-th call for a checkpoint kills this process."""
    owner: Any = {"update": counterpoint.training.loop, "write": Path}.get(place, os)
    name = "open" if place == "write" else place
    original = getattr(owner, name)
    calls = 0

    def is_ours(argument: Any) -> bool:
        if place == "update":
            return True
        path = os.readlink(f"/proc/self/fd/{argument}") if place == "fsync" else argument
        return Path(path).name.startswith(".step-")

    def kill(step: int | None) -> None:
        held = sorted(os.listdir(folder / "checkpoints")) if (folder / "checkpoints").exists() else []
        sizes = [(folder / "checkpoints" / name).stat().st_size for name in held if name.endswith(".tmp")]
        said = {"place": place, "count": calls, "held": held, "step": step, "size": sum(sizes)}
        Path(f"{folder}.killed").write_text(json.dumps(said))
        os.kill(os.getpid(), signal.SIGKILL)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        if place == "update":
            calls += 1
            original(*arguments)
            return kill(arguments[0].state.step) if calls == count else None
        calls += is_ours(arguments[0])
        if calls == count and is_ours(arguments[0]):
            return Half(original(*arguments, **options), kill) if place == "write" else kill(None)
        return original(*arguments, **options)

    setattr(owner, name, wrapped)


class Half:
    """A file of which only the first half is written before the kill."""

    def __init__(self, file: Any, kill: Callable[[None], None]) -> None:
        self.file, self.kill = file, kill

    def __enter__(self) -> "Half":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, content: bytes) -> None:
        self.file.write(content[: len(content) // 2])
        self.file.flush()
        self.kill(None)


def live(experiment: Experiment, data: DataSet, folder: Path, kill: tuple[str, int] | None) -> int:
    """The exit status of one life, as `os.waitstatus_to_exitcode` has it."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if kill is not None:
            kill_at(*kill, folder)
        finished = train(experiment, folder, data, options=Options(device="cpu"))
        os._exit(0 if finished else 1)
    finally:
        os._exit(2)  # an error, after its traceback


def live_again_and_again(experiment: Experiment, data: DataSet, plans: Plans) -> None:
    """Let each life of a run end by a kill, and the last one finish the run."""
    torch.set_num_threads(1)
    counterpoint.training.loop.CHECKPOINT_SECONDS = 0  # one per epoch, however fast
    with tempfile.TemporaryDirectory() as warm:  # torch imports much of itself in the first step
        train(replace(experiment, steps=1), Path(warm), data, options=Options(device="cpu"))
    for folder, kills in plans.items():
        left = []
        for place, count in kills:
            assert live(experiment, data, Path(folder), (place, count)) == -signal.SIGKILL
            left.append(json.loads(Path(f"{folder}.killed").read_text()))
        assert live(experiment, data, Path(folder), None) == 0
        print(json.dumps(left))


def lives(module: str, plans: Plans) -> list[list[dict[str, Any]]]:
    """What each kill of each run left, of trainings that `module` runs in a new process."""
    command = [sys.executable, "-m", module, json.dumps(plans)]
    # Git need not be asked in each life, and autograd's threads for a GPU do not survive a fork.
    environment = {**os.environ, "COUNTERPOINT_COMMIT": "none", "CUDA_VISIBLE_DEVICES": ""}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    live_again_and_again(TINY, noise_data(36, 4), json.loads(sys.argv[1]))
