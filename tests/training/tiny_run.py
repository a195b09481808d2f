"""A tiny training in a process of its own, which can kill itself for real at a chosen place.

    python -m tests.training.tiny_run FOLDER [PLACE COUNT]

PLACE is `update` (after the COUNT-th update), `write` (when half of a checkpoint is written), `fsync` or `replace`
(before a checkpoint's COUNT-th sync or rename).
Just before the kill, the place and what the checkpoint folder holds are written to FOLDER.killed.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import counterpoint.training.loop
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


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if len(sys.argv) > 2:
        kill_at(sys.argv[2], int(sys.argv[3]), target)
    counterpoint.training.loop.CHECKPOINT_SECONDS = 0  # one per epoch, however fast
    torch.set_num_threads(1)
    assert train(TINY, target, noise_data(36, 4), options=Options(device="cpu"))
