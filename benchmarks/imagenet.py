"""What training on ImageNet-1k would take on several GPUs: a calculation from what one GPU was measured to do.

    python benchmarks/imagenet.py

The network is timm's ResNet-50 as a BatchEnsemble with four members. `benchmarks/photographs.py` measured its step on
one H200, and its output is read from `results/`. Two parts of a step were never measured, because several GPUs were
not at hand. Both are calculated from what `LINKS` assumes:

- All gradients are added up over the GPUs after the backward pass, as a ring does it: each GPU sends and receives
  2 (N − 1) / N times their bytes.
- Every BatchNorm adds up its sums over the GPUs once in the forward and once in the backward pass. These messages are
  small, so each takes a fixed time.

Nothing is assumed to overlap, since nothing does in our code.
"""

import re
from dataclasses import dataclass
from pathlib import Path

MEASURED = Path(__file__).parents[1] / "results" / "speed" / "photographs-h200.txt"
IMAGES = 1_281_167  # ImageNet-1k's training images
PIXEL_BYTES = 3 * 224 * 224  # an image as it is kept: one byte per colour and pixel
PARAMETERS = 25_557_032  # ResNet-50's, for 1,000 classes; r and s add less than one percent per member
BATCH_NORMS = 53  # in ResNet-50
EPOCHS = 90  # as ResNet-50 is usually trained
GPUS = (1, 8, 64)


@dataclass(frozen=True)
class Step:
    """A step on one GPU, as it was measured."""

    members: int
    images: int
    milliseconds: float


@dataclass(frozen=True)
class Links:
    """What connects the GPUs: what each sends to its neighbour, and what one small sum over all of them takes."""

    gigabytes_per_second: float
    microseconds: float

    def __str__(self) -> str:
        return f"{self.gigabytes_per_second:g} GB/s, {self.microseconds:g} µs per small sum"


LINKS = (Links(300, 20), Links(25, 50))
"""Assumed: GPUs of one machine behind NVLink, and GPUs that reach each other by a network of 200 Gbit/s."""


@dataclass(frozen=True)
class Time:
    """A whole training on `gpus` GPUs."""

    gpus: int
    batch: int
    milliseconds: float
    hours: float
    gpu_hours: float

    def __str__(self) -> str:
        return (
            f"{self.gpus:4}{self.batch:14,}{self.milliseconds:14.1f}{self.hours:12.1f}{self.gpu_hours:14.0f}"
            f"{self.batch / self.milliseconds * 1000 * PIXEL_BYTES / self.gpus / 1e6:20.0f}"
        )


def read_step(text: str) -> Step:
    """The measured step in the output of `benchmarks/photographs.py`."""
    views = re.search(r"(\d+) × (\d+) views of 224 pixels", text)
    taken = re.search(r"^step with its views +([\d.]+)", text, re.MULTILINE)
    if views is None or taken is None:
        raise SystemExit(f"{MEASURED} is not the output of benchmarks/photographs.py; run that again")
    return Step(int(views[1]), int(views[2]), float(taken[1]))


def communication(gpus: int, links: Links) -> float:
    """Milliseconds per step in which the GPUs add up gradients and BatchNorm's sums."""
    if gpus == 1:
        return 0.0
    sent = 2 * (gpus - 1) / gpus * PARAMETERS * 4
    gradients = sent / (links.gigabytes_per_second * 1e9) * 1e3
    return gradients + 2 * BATCH_NORMS * links.microseconds / 1e3


def training_time(step: Step, gpus: int, links: Links) -> Time:
    batch = step.images * gpus
    milliseconds = step.milliseconds + communication(gpus, links)
    hours = EPOCHS * (IMAGES // batch) * milliseconds / 3.6e6
    return Time(gpus, batch, milliseconds, hours, gpus * hours)


def main() -> None:
    step = read_step(MEASURED.read_text(encoding="utf-8"))
    print(f"ResNet-50, {step.members} members, {step.images} images per GPU and step, {EPOCHS} epochs")
    for links in LINKS:
        print(f"\nassumed: {links}")
        print("GPUs  images/step   ms per step       hours     GPU hours   MB/s read per GPU")
        for gpus in GPUS:
            print(training_time(step, gpus, links))


if __name__ == "__main__":
    main()
