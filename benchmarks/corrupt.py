"""Images per second for each corruption, and how long a whole CIFAR-10-C takes.

    python benchmarks/corrupt.py [--whole] [--workers N]
    OMP_NUM_THREADS=1 python benchmarks/corrupt.py --size 224

Measured on one core, as the mean over the five severities. The images are CIFAR-10's if COUNTERPOINT_DATA has them, and
otherwise made-up ones of the same size. `--whole` also writes all 75 cells of 10,000 images to a temporary folder (2.3
GB).

With `--size 224` the images are four crops of photographs, under ImageNet-C's constants. Each corruption is compared
with a plain version of it (corruption_twins.py), which takes one image after another, in the same process. Both run in
turn, and the best run of each counts. This takes about a minute and a half.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import corruption_twins
import numpy as np
from corruption_statistics import photograph_crops
from corruption_twins import twin_arguments
from numpy.typing import NDArray

from counterpoint.corrupt import (
    CORRUPTIONS,
    EXTRA_CORRUPTIONS,
    SEVERITIES,
    corrupt,
    frost_source,
    write_corrupted_set,
)

Images = NDArray[np.uint8]

SET_SIZE = 10_000
SECONDS_PER_CELL = 0.6


def images_to_corrupt() -> tuple[str, Images]:
    path = Path(os.environ.get("COUNTERPOINT_DATA", ""), "cifar-10-batches-bin", "test_batch.bin")
    if not path.is_file():
        return "made-up images", np.random.default_rng(0).integers(0, 256, (SET_SIZE, 32, 32, 3), dtype=np.uint8)
    records = np.fromfile(path, np.uint8).reshape(SET_SIZE, 3073)
    return "CIFAR-10's test images", records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).copy()


def seconds_per_cell(images_NHWC: Images, name: str) -> float:
    """Seconds for a whole cell, computed from the first thousand images of each severity. The first call warms up."""
    sample = images_NHWC[:1000]
    corrupt(sample[:100], name, 1)
    begin = time.perf_counter()
    for severity in SEVERITIES:
        corrupt(sample, name, severity)
    return (time.perf_counter() - begin) / len(SEVERITIES) * SET_SIZE / len(sample)


def seconds_for_the_whole(images_NHWC: Images, workers: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        write_corrupted_set(
            images_NHWC, np.zeros(SET_SIZE, np.uint8), Path(folder), dataset="benchmark", workers=workers
        )
        return time.perf_counter() - begin


def best_seconds(images_NHWC: Images, name: str, severity: int) -> tuple[float, float]:
    """Of ours and of the twin, for all images. They take turns at being first, until enough time was spent."""
    arguments = twin_arguments(name, severity)
    numbers = corruption_twins.PlainNumbers(seed=0)

    def ours() -> Images:
        return corrupt(images_NHWC, name, severity)

    def twin() -> Images:
        return np.stack([corruption_twins.twin(image_HWC, name, numbers, **arguments) for image_HWC in images_NHWC])

    ours()
    seconds: dict[Callable[[], Images], list[float]] = {ours: [], twin: []}
    order = [ours, twin]
    while sum(seconds[ours] + seconds[twin]) < SECONDS_PER_CELL:
        for function in order:
            begin = time.perf_counter()
            function()
            seconds[function].append(time.perf_counter() - begin)
        order.reverse()
    return min(seconds[ours]), min(seconds[twin])


def compare_with_twins() -> None:
    images_NHWC = photograph_crops()[::4]
    print(f"{len(images_NHWC)} images of 224 × 224, frost: {frost_source()}")
    print(f"{'images/s':18}{'ours':>10}{'twin':>10}{'ratio':>10}")
    sums = {}
    for name in CORRUPTIONS + EXTRA_CORRUPTIONS:
        sums[name] = np.sum([best_seconds(images_NHWC, name, severity) for severity in SEVERITIES], axis=0)
        ours, twin = len(SEVERITIES) * len(images_NHWC) / sums[name]
        print(f"{name:18}{ours:10,.1f}{twin:10,.1f}{ours / twin:10.2f}", flush=True)
    for words, names in (("without", set(sums) - {"glass_blur"}), ("with", set(sums))):
        ours, twin = np.sum([sums[name] for name in names], axis=0)
        print(f"all {words} glass blur: {ours:.2f} s, the twins {twin:.2f} s: {twin / ours:.1f} times as fast")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, choices=(32, 224), default=32)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    if arguments.size == 224:
        compare_with_twins()
        return
    kind, images_NHWC = images_to_corrupt()
    print(f"{kind}, frost: {frost_source()}")
    seconds = {name: seconds_per_cell(images_NHWC, name) for name in CORRUPTIONS + EXTRA_CORRUPTIONS}
    for name, value in seconds.items():
        print(f"{name:18}{SET_SIZE / value:10,.0f} images/s")
    one_core = len(SEVERITIES) * sum(seconds[name] for name in CORRUPTIONS)
    print(f"75 cells of {SET_SIZE:,} images, from these figures: {one_core:.0f} s on one core")
    if arguments.whole:
        took = seconds_for_the_whole(images_NHWC, arguments.workers)
        print(f"written to disk by {arguments.workers} workers: {took:.0f} s")


if __name__ == "__main__":
    main()
