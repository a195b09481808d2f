"""How much memory a training step really takes on a CPU, beside what `check_memory` expects before the first step.

    python benchmarks/step_memory.py

Each case is a process of its own, which takes two steps on random views. What it takes is the highest memory that the
system counted for it (VmHWM), less what it had before the steps. Needs Linux, and 5 GiB of memory.
"""

import argparse
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import torch

from counterpoint.augment.views import Views
from counterpoint.experiments import find_experiment
from counterpoint.experiments.own import own_experiment
from counterpoint.training.batches import Batch
from counterpoint.training.engines import make_engine
from counterpoint.training.memory import Trial
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState

CASES = (("resnext29", 32, 16), ("photographs", 64, 32), ("photographs", 96, 16))
"""The network, the pixels of a side, and the images in a batch, each seen by four members."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", nargs=4, metavar=("NETWORK", "SIDE", "BATCH", "LESS"), help=argparse.SUPPRESS)
    if case := parser.parse_args().case:
        measure(case[0], int(case[1]), int(case[2]), less_memory=case[3] == "True")
        return
    print("network, pixels, batch, --less-memory: expected / taken in steps 1 and 2 in GiB; seconds of the trial")
    for network, side, batch in CASES:
        for less_memory in (False, True):
            case = [network, str(side), str(batch), str(less_memory)]
            subprocess.run([sys.executable, __file__, "--case", *case], check=True)


def measure(name: str, side: int, batch: int, *, less_memory: bool) -> None:
    chosen = find_experiment("cifar10/batch-ensemble") if name == "resnext29" else own_experiment(name, None, [])
    experiment, shape = replace(chosen, batch_size=batch), (3, side, side)
    model = build_model(experiment, 10, 3, seed=0, size=(side, side))
    started = time.process_time()
    need = Trial(model, experiment, shape, member_by_member=False).need(batch, less_memory, free=2**62)
    seconds = time.process_time() - started
    assert need is not None
    expected = need.bytes(batch, less_memory) - need.views(batch)
    engine = make_engine(
        TrainState.before_first_step(model.train(), experiment), experiment, "eager", less_memory=less_memory
    )
    views_MBCHW = torch.randn(experiment.members, batch, *shape, generator=torch.Generator().manual_seed(0))
    numbers = torch.arange(batch)
    inputs = Batch(numbers, numbers % 10, Views(views_MBCHW, None, None))
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the highest so far is forgotten
    taken = []
    for _ in range(2):
        engine.step(inputs)
        taken.append(f"{(status('VmHWM') - before) / 2**30:.2f}")
    print(f"{name}, {side}, {batch}, {less_memory}: {expected / 2**30:.2f} / {', '.join(taken)}; {seconds:.2f} s")


def status(key: str) -> int:
    """Bytes of this process, as the system counts them."""
    lines = Path(f"/proc/{os.getpid()}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{key}:"))


if __name__ == "__main__":
    main()
