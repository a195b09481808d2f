"""A tiny training in a process of its own, which can kill itself for real at a chosen place.

    python -m tests.training.tiny_run FOLDER [PLACE COUNT]

PLACE is `update` (after the COUNT-th update), `fsync` or `replace` (before a checkpoint's COUNT-th sync or rename).
Just before the kill, the place and what the checkpoint folder holds are written to FOLDER.killed.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch

import counterpoint.training.loop
from counterpoint.training.loop import Options, train
from tests.small import TINY, noise_data


def kill_at(place: str, count: int, folder: Path) -> None:
    """Wrap the function called at `place` so that its COUNT-th call for a checkpoint kills this process."""
    owner: Any = counterpoint.training.loop if place == "update" else os
    original = getattr(owner, place)
    calls = 0

    def is_ours(argument: Any) -> bool:
        if place == "update":
            return True
        path = os.readlink(f"/proc/self/fd/{argument}") if place == "fsync" else argument
        return Path(path).name.startswith(".step-")

    def wrapped(*arguments: Any) -> Any:
        nonlocal calls
        calls += is_ours(arguments[0])
        if place == "update":
            original(*arguments)
        if calls == count:
            held = sorted(os.listdir(folder / "checkpoints")) if (folder / "checkpoints").exists() else []
            Path(f"{folder}.killed").write_text(json.dumps({"place": place, "count": calls, "held": held}))
            os.kill(os.getpid(), signal.SIGKILL)
        return None if place == "update" else original(*arguments)

    setattr(owner, place, wrapped)


if __name__ == "__main__":
    target = Path(sys.argv[1])
    if len(sys.argv) > 2:
        kill_at(sys.argv[2], int(sys.argv[3]), target)
    counterpoint.training.loop.CHECKPOINT_SECONDS = 0  # one per epoch, however fast
    torch.set_num_threads(1)
    assert train(TINY, target, noise_data(36, 4), options=Options(device="cpu"))
