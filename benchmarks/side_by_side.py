"""Do the paths learn the same? The first steps of an experiment from the same start, path beside path, on real data.

    python benchmarks/side_by_side.py --paths compiled fast --seeds 0 1 2 3 --out side-by-side.json
    python benchmarks/side_by_side.py --set learning_rate=0.01 --seeds 0 1 2 3 4 5 6 7

Prints the mean training loss of each block of steps, and each path's difference to the first one: its mean over seeds
and the standard error of that. Training at the paper's learning rate is chaotic at first: runs that differ in rounding
alone drift apart, and the difference is mostly chance. A smaller learning rate keeps them together, and shows a
difference that rounding makes on average. The learning rate follows the experiment's own schedule over --epochs epochs.
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
from counterpoint.data import load
from counterpoint.environment import command_line, describe_environment
from counterpoint.experiments import find_experiment
from counterpoint.models import build_model
from counterpoint.optim import make_optimiser
from counterpoint.paths import check_path, choose_path, make_learner
from counterpoint.steps import Part, Step, TrainState, epoch_steps, split_training_images, total_steps, update
from counterpoint.train import choose_device


def all_steps(part: Part, experiment: Experiment, seed: int, num_blocks: int) -> Iterator[Step]:
    """The experiment's steps in order."""
    for epoch in range(experiment.epochs):
        yield from epoch_steps(part, experiment, seed=seed, epoch=epoch, at_once=8, num_blocks=num_blocks)


def losses(part: Part, experiment: Experiment, path: str, seed: int, steps: int, block: int) -> list[float]:
    """The mean loss of each `block` steps."""
    device = part.numbers_N.device
    model = build_model(experiment, len(part.images.classes), part.images.images_NCHW.shape[1], seed).train()
    model = model.to(device, memory_format=torch.channels_last if device.type == "cuda" else torch.contiguous_format)  # type: ignore[call-overload]
    state = TrainState(model, make_optimiser(model, experiment), torch.zeros(3, dtype=torch.float64, device=device))
    learn = make_learner(state, experiment, choose_path(check_path(path), experiment, device))
    means = []
    for step in itertools.islice(all_steps(part, experiment, seed, model.num_blocks), steps):
        update(state, step, experiment, total_steps(experiment, len(part)), learn)
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
    parser.add_argument("--paths", nargs="+", default=["eager", "fast"])
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
    part = split_training_images(load(experiment.dataset), experiment)[0].to(device)
    found: dict[str, list[list[float]]] = {path: [] for path in options.paths}
    record = {"command": command_line(), "environment": describe_environment(device), "block": options.block}
    for number, seed in enumerate(options.seeds, 1):
        for path in options.paths:
            found[path].append(losses(part, experiment, path, seed, options.steps, options.block))
            print(line(f"{path}, seed {seed}", found[path][-1]), flush=True)
        if options.out:  # after every seed: what is there is kept when the rest is cut short
            seeds = options.seeds[:number]
            options.out.write_text(json.dumps(record | {"seeds": seeds, "losses": found}, indent=1) + "\n")
    first, *others = options.paths
    for path in others if len(options.seeds) > 1 else []:
        means, errors = zip(*difference(found[path], found[first]), strict=True)
        print(line(f"{path} − {first}", means))
        print(line("± standard error", errors))


if __name__ == "__main__":
    main()
