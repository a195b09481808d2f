"""Images per second for each corruption, and how long a whole CIFAR-10-C takes.

    python benchmarks/corrupt.py [--whole] [--workers N]

Measured on one core, as the mean over the five severities. The images are CIFAR-10's if COUNTERPOINT_DATA has them, and
otherwise made-up ones of the same size. `--whole` also writes all 75 cells of 10,000 images to a temporary folder (2.3
GB).
"""

import argparse
import os
import tempfile
import time
from pathlib import Path

import numpy as np
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
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
