"""Do the engines learn the same? The first steps of an experiment from the same start, engine by engine, on real data.

    python benchmarks/side_by_side.py --engines compiled fast --seeds 0 1 2 3 --out side-by-side.json
    python benchmarks/side_by_side.py --set learning_rate=0.01 --seeds 0 1 2 3 4 5 6 7

It prints the mean training loss of each block of steps, and each engine's difference from the first engine: its mean
over seeds and the standard error of that mean. Training at the paper's learning rate is chaotic at first. Runs that
differ only in rounding drift apart, and their difference is mostly chance. A smaller learning rate keeps them together.
Then the difference that rounding makes on average can be seen. The learning rate follows the experiment's schedule over
--epochs epochs.
"""

import argparse
import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, stdev

import torch

from counterpoint.config import Experiment, override
from counterpoint.data import ImageSet, load, parts_of
from counterpoint.devices import choose_device, moved
from counterpoint.errors import one_of
from counterpoint.experiments import find_experiment
from counterpoint.storage.provenance import command_line, describe_environment
from counterpoint.training.batches import Batch, epoch_batches, total_steps
from counterpoint.training.engines import ENGINES, choose_engine, make_engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState


def all_batches(images: ImageSet, experiment: Experiment, seed: int, num_blocks: int) -> Iterator[Batch]:
    """What the experiment's steps see, in order."""
    for epoch in range(experiment.epochs):
        yield from epoch_batches(images, experiment, seed=seed, epoch=epoch, at_once=8, num_blocks=num_blocks)


def losses(images: ImageSet, experiment: Experiment, engine: str, seed: int, steps: int, block: int) -> list[float]:
    """The mean loss of each `block` steps."""
    device = images.numbers_N.device
    model = moved(build_model(experiment, len(images.classes), images.image_shape[0], seed), device).train()
    state = TrainState.before_first_step(model, experiment)
    chosen = make_engine(state, experiment, choose_engine(one_of("engine", engine, ENGINES), experiment, device))
    means = []
    for batch in itertools.islice(all_batches(images, experiment, seed, model.num_blocks), steps):
        update(chosen, batch, total_steps(experiment, len(images)))
        if state.step % block == 0:
            loss, _, rows = state.sums.tolist()
            means.append(loss / rows)
            state.sums.zero_()
    return means


def difference(found: list[list[float]], base: list[list[float]]) -> list[tuple[float, float]]:
    """Each block's mean difference over seeds, and its standard error."""
    by_block = zip(
        *([a - b for a, b in zip(*pair, strict=True)] for pair in zip(found, base, strict=True)), strict=True
    )
    return [(mean(values), stdev(values) / math.sqrt(len(values))) for values in by_block]


def line(name: str, figures: Sequence[float]) -> str:
    return f"{name:24}" + " ".join(f"{figure:8.4f}" for figure in figures)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", default="cifar10/batch-ensemble")
    parser.add_argument("--engines", nargs="+", default=["eager", "fast"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--block", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=20, help="of the schedule")
    parser.add_argument("--set", nargs="+", default=[], metavar="FIELD=VALUE", help="of the experiment")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = choose_device(options.device)
    torch.backends.cudnn.benchmark = True
    experiment = override(replace(find_experiment(options.experiment), epochs=options.epochs), options.set)
    images = parts_of(load(experiment.dataset), experiment).train.to(device)
    found: dict[str, list[list[float]]] = {engine: [] for engine in options.engines}
    record = {"command": command_line(), "environment": describe_environment(device), "block": options.block}
    for number, seed in enumerate(options.seeds, 1):
        for engine in options.engines:
            found[engine].append(losses(images, experiment, engine, seed, options.steps, options.block))
            print(line(f"{engine}, seed {seed}", found[engine][-1]), flush=True)
        if options.out:  # written after every seed, so that an interruption loses none
            seeds = options.seeds[:number]
            options.out.write_text(json.dumps(record | {"seeds": seeds, "losses": found}, indent=1) + "\n")
    first, *others = options.engines
    for engine in others if len(options.seeds) > 1 else []:
        means, errors = zip(*difference(found[engine], found[first]), strict=True)
        print(line(f"{engine} − {first}", means))
        print(line("± standard error", errors))


if __name__ == "__main__":
    main()
