"""A training that is killed again and again, for real, in processes forked from one that has imported everything.

    python -m tests.training.killed_lives FOLDER KILLS

KILLS is a list in JSON of [place, count], as in `tests.training.tiny_run`. Each life goes on with the run in FOLDER and
kills itself there; the last life finishes it. What each kill left is printed, a line of JSON each.
"""

import json
import os
import signal
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import torch

import counterpoint.training.loop
from counterpoint.policy import MemberPolicy
from counterpoint.training.loop import Options, train
from tests.small import TINY, noise_data
from tests.training.tiny_run import kill_at

EPOCHS = 26
EXPERIMENT = replace(TINY, epochs=EPOCHS, width=1, batch_size=2, policy=MemberPolicy())
DATA = noise_data(10, 2)


def live(folder: Path, kill: tuple[str, int] | None) -> int:
    """The exit status of one life, as `os.waitstatus_to_exitcode` has it."""
    if child := os.fork():
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        if kill is not None:
            kill_at(*kill, folder)
        finished = train(EXPERIMENT, folder, DATA, options=Options(device="cpu"))
        os._exit(0 if finished else 1)
    finally:
        os._exit(2)  # an error, after its traceback


if __name__ == "__main__":
    torch.set_num_threads(1)
    counterpoint.training.loop.CHECKPOINT_SECONDS = 0  # one per epoch, however fast
    with tempfile.TemporaryDirectory() as warm:  # torch imports much of itself in the first step
        train(replace(EXPERIMENT, steps=1), Path(warm), DATA, options=Options(device="cpu"))
    target = Path(sys.argv[1])
    for place, count in json.loads(sys.argv[2]):
        assert live(target, (place, count)) == -signal.SIGKILL
        print(Path(f"{target}.killed").read_text())
    assert live(target, None) == 0
