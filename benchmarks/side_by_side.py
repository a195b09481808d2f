"""Do the paths learn the same? The first steps of an experiment from the same start, path beside path, on real data.

    python benchmarks/side_by_side.py --paths eager compiled fast --seeds 0 1 2 --out side-by-side.json

Prints the mean training loss of each block of steps. Training is chaotic: runs that differ in rounding alone drift
apart, so a path is wrong only if it is off for every seed, or from the first block on. The learning rate follows the
experiment's own schedule over --epochs epochs.
"""

import argparse
import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch

from counterpoint.config import Experiment
from counterpoint.data import load
from counterpoint.environment import describe_environment
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--experiment", default="cifar10/batch-ensemble")
    parser.add_argument("--paths", nargs="+", default=["eager", "fast"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--block", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=20, help="of the schedule")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    device = choose_device(options.device)
    torch.backends.cudnn.benchmark = True
    experiment = replace(find_experiment(options.experiment), epochs=options.epochs)
    part = split_training_images(load(experiment.dataset), experiment)[0].to(device)
    found: dict[str, list[float]] = {}
    for path, seed in itertools.product(options.paths, options.seeds):
        found[f"{path}, seed {seed}"] = losses(part, experiment, path, seed, options.steps, options.block)
        print(
            f"{path:9} seed {seed}: " + " ".join(f"{loss:6.3f}" for loss in found[f"{path}, seed {seed}"]), flush=True
        )
    if options.out:
        record = {"environment": describe_environment(device), "experiment": options.experiment, "block": options.block}
        options.out.write_text(json.dumps(record | {"losses": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
