"""What augmentation costs beside a training step: flip and crop, AugMix, the adversarial pass.

    python benchmarks/step_share.py --device cuda                  ResNeXt-29, 4 × 128, as in the paper
    python benchmarks/step_share.py --device cpu --network resnet  a small network, for CPUs

The step is a plain one (forward, backward, SGD) on ready views, with the fastest engine. Its time is the median over
--steps steps, after a warm-up. Views are made for 64 steps at once, as in training, and their time is divided by 64.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import median

import torch

from counterpoint.config import Experiment
from counterpoint.data.sets import ImageSet
from counterpoint.policy import Adversarial, AugMix, MemberPolicy
from counterpoint.training.batches import epoch_batches
from counterpoint.training.engines import choose_engine, make_engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.step import TrainState

AT_ONCE = 64
POLICIES = {
    "flip and crop": MemberPolicy(),
    "flip, crop, AugMix (1, 2, 3, 4), p = 0.875": MemberPolicy(augmix=AugMix()),
    "flip, crop, AugMix (1, 2, 3, 4), p = 1": MemberPolicy(augmix=AugMix(p=1.0)),
}


def milliseconds(work: Callable[[], object], device: torch.device, repeats: int) -> float:
    """The median over repeats. Each ends when the device is done."""
    times = []
    for _ in range(repeats):
        _wait(device)
        start = time.perf_counter()
        work()
        _wait(device)
        times.append(1000 * (time.perf_counter() - start))
    return median(times)


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def random_images(count: int, device: torch.device) -> ImageSet:
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(0, 256, (count, 3, 32, 32), dtype=torch.uint8, generator=generator)
    return ImageSet(pixels, torch.arange(count) % 10, tuple("abcdefghij")).to(device)


def time_views(experiment: Experiment, images: ImageSet, repeats: int) -> float:
    """Milliseconds per step to make the views of 64 steps at once."""

    def make() -> None:
        next(epoch_batches(images, experiment, seed=0, epoch=0, at_once=AT_ONCE, num_blocks=9))

    make()
    return milliseconds(make, images.numbers_N.device, repeats) / AT_ONCE


def time_step(experiment: Experiment, images: ImageSet, repeats: int) -> float:
    """Milliseconds of one update with its views ready."""
    device = images.numbers_N.device
    model = build_model(experiment, 10, 3, seed=0).to(device).train()
    if device.type == "cuda":
        model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    state = TrainState.before_first_step(model, experiment)
    engine = make_engine(state, experiment, choose_engine("auto", experiment, device))
    batches = list(epoch_batches(images, experiment, seed=0, epoch=0, at_once=AT_ONCE, num_blocks=9))[:8]
    for batch in batches:
        update(engine, batch, total=1000)
    turns = iter(batches * repeats)
    return milliseconds(lambda: update(engine, next(turns), total=1000), device, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--network", choices=("resnext29", "resnet"), default="resnext29")
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    device = torch.device(arguments.device)
    torch.backends.cudnn.benchmark = True
    experiment = Experiment("bench", "cifar10", model=arguments.network)
    images = random_images(AT_ONCE * experiment.batch_size, device)

    plain = time_step(experiment, images, arguments.steps)
    print(f"{arguments.network}, 4 × 128, on {device}")
    print(f"{'':48}{'ms per step':>12}{'share of the step':>19}")
    print(f"{'training step, views ready':48}{plain:12.2f}{1:19.1%}", flush=True)
    for name, policy in POLICIES.items():
        taken = time_views(replace(experiment, policy=policy), images, 7)
        print(f"{name:48}{taken:12.2f}{taken / plain:19.1%}", flush=True)
    adversarial = replace(experiment, policy=MemberPolicy(adversarial=Adversarial()))
    extra = time_step(adversarial, images, arguments.steps) - plain
    print(f"{'adversarial pass':48}{extra:12.2f}{extra / plain:19.1%}")


if __name__ == "__main__":
    main()
