"""How a training step's time and memory grow with the members, with the size of the images, and with their number.

    python benchmarks/scaling.py [--out FILE.json]

On one GPU: ResNeXt-29 with batches of 128 images of CIFAR's size, engine `auto`, views included (flip and crop). One
thing is changed at a time. As in training, views are made for several steps together. Such a round is timed, and its
time is divided by its steps. Figures are medians over rounds. Memory is the most that was held, images included.
"""

import argparse
import gc
import json
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import torch

from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.devices import moved, training_arithmetic
from counterpoint.experiments import find_experiment
from counterpoint.training.batches import epoch_batches, steps_at_once
from counterpoint.training.engines import choose_engine, make_engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState

CLASSES = 10
EXPERIMENT = find_experiment("cifar10/batch-ensemble")
MEMBERS = (1, 2, 4, 8, 16)
SIZES = (32, 48, 64, 96)
IMAGES = (50_000, 200_000, 800_000)
ROUNDS = 3


@dataclass(frozen=True)
class Figure:
    """One setting's step."""

    members: int
    size: int
    images: int
    engine: str
    milliseconds: float
    gigabytes: float
    parameters: int

    def __str__(self) -> str:
        views = 1000 * self.members * EXPERIMENT.batch_size / self.milliseconds
        return (
            f"{self.members:3} members, {self.size:3} pixels, {self.images:9,} images, {self.engine:9}"
            f"{self.milliseconds:9.2f} ms per step{views:10,.0f} views/s{self.gigabytes:8.2f} GB"
            f"{self.parameters / 1e6:8.2f} M parameters"
        )


def measure(experiment: Experiment, size: int, images: int) -> Figure:
    device, shape = torch.device("cuda"), (3, size, size)
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    pixels = torch.randint(0, 256, (images, *shape), dtype=torch.uint8, device=device)
    labels = torch.arange(images, device=device) % CLASSES
    made = ImageSet(pixels, labels, tuple(map(str, range(CLASSES))))
    model = build_model(experiment, CLASSES, 3, seed=0, size=shape[1:])
    parameters = sum(parameter.numel() for parameter in model.parameters())
    model = moved(model, device).train()
    state, name = TrainState.before_first_step(model, experiment), choose_engine("auto", experiment, device)
    engine, at_once = make_engine(state, experiment, name), steps_at_once(experiment, shape, device)
    moments = []
    for step, batch in enumerate(
        epoch_batches(made, experiment, seed=0, epoch=0, at_once=at_once, num_blocks=model.num_blocks), 1
    ):
        update(engine, batch, total=100_000)
        if step % at_once == 0:
            moments.append(torch.cuda.Event(enable_timing=True))
            moments[-1].record()
        if len(moments) == ROUNDS + 2:  # the first round compiles, and the second warms up
            break
    torch.cuda.synchronize()
    taken = [before.elapsed_time(after) / at_once for before, after in pairwise(moments[1:])]
    gigabytes = torch.cuda.max_memory_allocated() / 1e9
    return Figure(experiment.members, size, images, name, median(taken), gigabytes, parameters)


def settings() -> Iterator[tuple[Experiment, int, int]]:
    for members in MEMBERS:
        yield replace(EXPERIMENT, num_members=members if members > 1 else None), SIZES[0], IMAGES[0]
    for size in SIZES[1:]:
        yield EXPERIMENT, size, IMAGES[0]
    for images in IMAGES[1:]:
        yield EXPERIMENT, SIZES[0], images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args()
    began, figures = time.perf_counter(), []
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}", flush=True)
    with training_arithmetic(torch.device("cuda"), deterministic=False):
        for experiment, size, images in settings():
            figures.append(measure(experiment, size, images))
            print(f"{figures[-1]}   (after {time.perf_counter() - began:.0f} s)", flush=True)
            if arguments.out:
                arguments.out.write_text(json.dumps([asdict(figure) for figure in figures], indent=1) + "\n")


if __name__ == "__main__":
    main()
