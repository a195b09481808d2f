"""A tiny training that is killed for real at chosen places, in processes forked from one that has imported everything.

    python -m tests.training.tiny_run FOLDER KILLS

KILLS is a list in JSON of [PLACE, COUNT]. Each life goes on with the run in FOLDER and kills itself there; the last
life finishes it. What each kill left is printed, a line of JSON each.

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


def live_again_and_again(experiment: Experiment, data: DataSet, folder: Path, kills: list[tuple[str, int]]) -> None:
    """Let each life end by a kill, and the last one finish the run."""
    torch.set_num_threads(1)
    counterpoint.training.loop.CHECKPOINT_SECONDS = 0  # one per epoch, however fast
    with tempfile.TemporaryDirectory() as warm:  # torch imports much of itself in the first step
        train(replace(experiment, steps=1), Path(warm), data, options=Options(device="cpu"))
    for place, count in kills:
        assert live(experiment, data, folder, (place, count)) == -signal.SIGKILL
        print(Path(f"{folder}.killed").read_text())
    assert live(experiment, data, folder, None) == 0


def lives(module: str, folder: Path, kills: list[tuple[str, int]]) -> list[dict[str, Any]]:
    """What each kill left, of a training that `module` runs in a new process."""
    command = [sys.executable, "-m", module, str(folder), json.dumps(kills)]
    # Git need not be asked in each life, and autograd's threads for a GPU do not survive a fork.
    environment = {**os.environ, "COUNTERPOINT_COMMIT": "none", "CUDA_VISIBLE_DEVICES": ""}
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


if __name__ == "__main__":
    live_again_and_again(TINY, noise_data(36, 4), Path(sys.argv[1]), json.loads(sys.argv[2]))
