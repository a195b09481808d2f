"""A tiny training in a process of its own, which can kill itself for real at a chosen place.

    python tiny_run.py FOLDER [PLACE COUNT]

PLACE is `update` (after the COUNT-th update), `fsync` or `replace` (before a checkpoint's COUNT-th sync or rename).
Just before the kill, the place and what the checkpoint folder holds are written to FOLDER.killed.
"""

import json
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import counterpoint.training.loop
from counterpoint.config import Experiment
from counterpoint.data.sets import DataSet, ImageSet
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream
from counterpoint.training.loop import Options, train

EXPERIMENT = Experiment(
    "tiny",
    "digits",
    train_on="all",
    model="resnet",
    width=4,
    num_members=2,
    epochs=3,
    batch_size=8,
    policy=MemberPolicy(
        augmix=AugMix((1.0, 3.0)),
        adversarial=Adversarial((0.05, 0.1), "shuffled"),
        stochastic_depth=StochasticDepth((0.1, 0.2)),
    ),
)


def tiny_data() -> DataSet:
    numbers = torch.arange(36)
    pixels = Stream(0, "tiny").integers(numbers, 3 * 8 * 8, 256).view(36, 3, 8, 8).to(torch.uint8)
    images = ImageSet(pixels, numbers % 4, ("a", "b", "c", "d"))
    return DataSet("tiny", images, images)


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
    assert train(replace(EXPERIMENT), target, tiny_data(), options=Options(device="cpu"))
