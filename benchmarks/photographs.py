"""A training step on photographs, with views made on the GPU, and with views made by processes with Pillow.

    python benchmarks/photographs.py            BatchEnsemble ResNet-50 of timm, 4 × 32 views of 224 pixels
    python benchmarks/photographs.py --smoke    a small network and small images: does it run? On a CPU, in a minute

The step is that of `counterpoint train --images … --model timm/resnet50 --pretrained`, but from random weights: random
resized crop, flip, AugMix severity 1 to 4, the compiled engine in bf16. The images are on the GPU, in 8 bits. As in
training, views are made for several steps together. Such a round is timed, and its time is divided by its steps.

Then processes make views by the same recipe with Pillow, and feed the same step. torch's DataLoader hands the views
over through pinned memory, rounded to 8 bits, so a quarter of the bytes are sent. A round is one batch per process.

Figures are medians over rounds, with the least and the most. The first round, which compiles, is not counted.
"""

import argparse
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import cycle, islice, pairwise
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pillow_views import member_views
from torch.nn.functional import interpolate
from torch.utils.data import DataLoader, Dataset

from counterpoint.augment.standard import to_unit
from counterpoint.augment.views import Views
from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.devices import choose_device, moved, training_arithmetic
from counterpoint.experiments.own import own_experiment
from counterpoint.models import ModelFacts, describe_model, wanted_of
from counterpoint.policy import MemberPolicy
from counterpoint.training.batches import Batch, epoch_batches, steps_at_once
from counterpoint.training.engines import Engine, choose_engine, make_engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState

CLASSES = 100
AHEAD = 2  # batches that each process may be ahead
SMOKE = {"device": "cpu", "model": "resnet", "size": 72, "batch": 2, "steps": 4, "processes": 2}


@dataclass(frozen=True)
class Figure:
    """Milliseconds per step of each round."""

    rounds: list[float]

    @property
    def middle(self) -> float:
        return median(self.rounds)

    def line(self, name: str, views: int) -> str:
        spread = f"{min(self.rounds):.2f} – {max(self.rounds):.2f}"
        return f"{name:44}{self.middle:12.2f}{spread:>20}{1000 * views / self.middle:12,.0f}"


@dataclass(frozen=True)
class Bench:
    """What is timed: steps of `engine` on views of `images`."""

    experiment: Experiment
    facts: ModelFacts
    images: ImageSet
    engine: Engine
    device: torch.device
    at_once: int
    """How many steps' views are made together."""

    def epoch(self, number: int) -> Iterator[Batch]:
        return epoch_batches(
            self.images,
            self.experiment,
            seed=0,
            epoch=number,
            at_once=self.at_once,
            num_blocks=0,
            normalisation=self.facts.normalisation,
        )

    def steps(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Each batch after its step."""
        for batch in batches:
            update(self.engine, batch, total=100_000)
            yield batch

    def time(self, steps: Iterable[object], per_round: int) -> Figure:
        """The time from the end of a round to the end of the next. A GPU does not wait between them."""
        moments = [self._now() for number, _ in enumerate(steps, 1) if number % per_round == 0]
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        return Figure([self._between(before, after) / per_round for before, after in pairwise(moments)])

    def _now(self) -> Any:
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def _between(self, before: Any, after: Any) -> float:
        return float(before.elapsed_time(after)) if self.device.type == "cuda" else 1000 * (after - before)


class PillowViews(Dataset[tuple[NDArray[np.uint8], int]]):
    """Each member's view of an image, (M, H, W, C), and its label. After the last image comes the first again."""

    def __init__(self, images: ImageSet, policy: MemberPolicy, count: int) -> None:
        self.images_NHWC = images.images_NCHW.cpu().permute(0, 2, 3, 1).contiguous().numpy()
        self.labels, self.policy, self.count = images.labels_N.tolist(), policy, count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, item: int) -> tuple[NDArray[np.uint8], int]:
        place = item % len(self.labels)
        image = Image.fromarray(self.images_NHWC[place])
        return member_views(image, self.policy, np.random.default_rng(item)), self.labels[place]


def pillow_batches(bench: Bench, processes: int, count: int) -> Iterator[Batch]:
    """`count` batches of views that the processes make."""
    device, normalisation, size = bench.device, bench.facts.normalisation, bench.experiment.batch_size
    loader = DataLoader(
        PillowViews(bench.images, bench.experiment.policy, count * size),
        size,
        num_workers=processes,
        prefetch_factor=AHEAD,
        persistent_workers=True,
        pin_memory=device.type == "cuda",
        multiprocessing_context="fork",
    )
    for views_BMHWC, labels in loader:  # as tensors
        views_MBCHW = views_BMHWC.to(device, non_blocking=True).permute(1, 0, 4, 2, 3)
        labels_B = labels.to(device, non_blocking=True)
        views = Views(normalisation.apply(to_unit(views_MBCHW)), None, None, None, normalisation)
        yield Batch(torch.zeros_like(labels_B), labels_B, views)


def made_up_images(count: int, size: int) -> ImageSet:
    """Smooth colours with a little noise."""
    generator = torch.Generator().manual_seed(0)
    coarse = torch.rand(count, 3, 14, 14, generator=generator)
    smooth = interpolate(coarse, (size, size), mode="bilinear").mul_(230).to(torch.uint8)
    noise = torch.randint(0, 26, (3, size, size), dtype=torch.uint8, generator=generator)
    return ImageSet(smooth + noise, torch.arange(count) % CLASSES, tuple(map(str, range(CLASSES))))


def prepare(arguments: argparse.Namespace, device: torch.device) -> Bench:
    settings = [f"model={arguments.model}", f"images.size={arguments.size}", f"batch_size={arguments.batch}"]
    experiment = own_experiment("photographs", None, settings, fine_tuned=True)
    shape = (3, arguments.size, arguments.size)
    facts = describe_model(wanted_of(experiment, CLASSES, 3, shape[1:], pretrained=False))
    model = moved(build_model(experiment, CLASSES, 3, seed=0, size=shape[1:], facts=facts), device).train()
    state = TrainState.before_first_step(model, experiment)
    engine = make_engine(state, experiment, choose_engine("auto", experiment, device))
    at_once = steps_at_once(experiment, shape, device)
    rounds = math.ceil(arguments.steps / at_once) + 1
    images = made_up_images(rounds * at_once * experiment.batch_size, arguments.size).to(device)
    return Bench(experiment, facts, images, engine, device, at_once)


def measure(bench: Bench, steps: int, processes: int) -> Iterator[tuple[str, Figure]]:
    """The figures by name, the step with its views first."""
    yield "step with its views", bench.time(bench.steps(bench.epoch(0)), bench.at_once)
    ready = list(islice(bench.epoch(1), bench.at_once))
    yield "step, views ready", bench.time(bench.steps(islice(cycle(ready), steps + 1)), 1)
    made = (next(bench.epoch(number)) for number in range(steps // bench.at_once + 2))
    alone = bench.time(made, 1)
    yield "views alone", Figure([each / bench.at_once for each in alone.rounds])
    if processes:
        before = AHEAD * processes  # what was made before the first step is used up after so many
        batches = pillow_batches(bench, processes, before + processes * max(5, steps // processes))
        fed = islice(bench.steps(batches), before, None)
        yield f"step fed by {processes} processes with Pillow", bench.time(fed, processes)


def report(bench: Bench, figures: dict[str, Figure], peak_gigabytes: float) -> None:
    e, views = bench.experiment, bench.experiment.members * bench.experiment.batch_size
    where = torch.cuda.get_device_name(bench.device) if bench.device.type == "cuda" else "CPU"
    print(f"{e.model}, {e.members} × {e.batch_size} views of {bench.images.image_shape[1]} pixels, {where}, ", end="")
    print(f"torch {torch.__version__}; views of {bench.at_once} steps made together")
    print(f"{'':44}{'ms per step':>12}{'least – most':>20}{'views/s':>12}")
    for name, figure in figures.items():
        print(figure.line(name, views))
    whole, bare, alone, *others = (figure.middle for figure in figures.values())
    print(f"views alone: {alone / whole:.1%} of the step with its views; with them it takes {whole - bare:.2f} ms more")
    for fed in others:
        print(f"fed by Pillow: {fed / whole:.2f} times the step with its views")
    if bench.device.type == "cuda":
        print(f"peak memory of the step with its views: {peak_gigabytes:.1f} GB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default="timm/resnet50")
    parser.add_argument("--size", type=int, default=224, help="pixels; above 64, where crops are resized")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--steps", type=int, default=48, help="to be timed of each kind")
    parser.add_argument("--processes", type=int, default=16, help="that make views with Pillow; 0 for none")
    parser.add_argument("--smoke", action="store_true")
    arguments = parser.parse_args()
    if arguments.smoke:
        vars(arguments).update(SMOKE)
    began, device = time.perf_counter(), choose_device(arguments.device)
    figures, peaks = {}, []
    with training_arithmetic(device, deterministic=False):
        bench = prepare(arguments, device)
        for name, figures[name] in measure(bench, arguments.steps, arguments.processes):
            print(f"{name}: {figures[name].middle:.2f} ms, after {time.perf_counter() - began:.0f} s", flush=True)
            peaks.append(torch.cuda.max_memory_allocated() / 1e9 if device.type == "cuda" else math.nan)
        report(bench, figures, peaks[0])


if __name__ == "__main__":
    main()
