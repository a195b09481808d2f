"""AugMix throughput beside a straightforward Pillow version in the same run (severity 3, every image augmented).

    python benchmarks/augmix.py --device cpu
    python benchmarks/augmix.py --device cuda --images 32768

counterpoint samples the plan and applies it to all images at once. 32,768 views are 64 steps of 4 × 128. The Pillow
version works image by image, as the AugMix code does, in one process and in one process per core. The processes throw
their results away. This is the best case for Pillow, because nothing is sent between processes. Each figure is the
median over --repeats.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from pillow_views import pillow_augmix

from counterpoint.augment.augmix import apply_augmix
from counterpoint.augment.augmix_plan import sample_augmix
from counterpoint.seeding import Stream

SEVERITY = 3.0
VIEWS_PER_STEP = 4 * 128


def pillow_augmix_all(images_NHWC: NDArray[np.uint8]) -> None:
    rng = np.random.default_rng(0)
    for image_HWC in images_NHWC:
        pillow_augmix(Image.fromarray(image_HWC), SEVERITY, rng)


def images_per_second(work: Callable[[], object], images: int, repeats: int) -> float:
    work()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return images / median(seconds)


def measure_ours(images_NCHW: torch.Tensor, repeats: int) -> float:
    indices_N = torch.arange(len(images_NCHW), device=images_NCHW.device)

    def work() -> None:
        apply_augmix(images_NCHW, sample_augmix(indices_N, SEVERITY, Stream(0, "augmix"), p=1))
        if images_NCHW.is_cuda:
            torch.cuda.synchronize()

    return images_per_second(work, len(images_NCHW), repeats)


def measure_pillow(images_NHWC: NDArray[np.uint8], processes: int, repeats: int) -> float:
    if processes == 1:
        return images_per_second(lambda: pillow_augmix_all(images_NHWC), len(images_NHWC), repeats)
    parts = np.array_split(images_NHWC, processes)
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        return images_per_second(lambda: pool.map(pillow_augmix_all, parts, chunksize=1), len(images_NHWC), repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--images", type=int, default=4096, help="views made at once by ours (Pillow: at most 2,000)")
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()

    generator = torch.Generator().manual_seed(0)
    images_NCHW = torch.randint(0, 256, (arguments.images, 3, 32, 32), dtype=torch.uint8, generator=generator)
    images_NHWC = images_NCHW[:2000].permute(0, 2, 3, 1).numpy().copy()
    cores = len(os.sched_getaffinity(0))
    on_gpu = arguments.device.startswith("cuda")
    where = torch.cuda.get_device_name(arguments.device) if on_gpu else f"CPU, {torch.get_num_threads()} threads"

    rates = {"Pillow, 1 process": measure_pillow(images_NHWC, 1, arguments.repeats)}
    if cores > 1:
        rates[f"Pillow, {cores} processes"] = measure_pillow(images_NHWC, cores, arguments.repeats)
    rates[f"counterpoint, {where}"] = measure_ours(images_NCHW.to(arguments.device), arguments.repeats)
    print(f"{'AugMix, 32 × 32 RGB':40}{'images/s':>12}{'ratio':>8}{'µs per 4×128':>14}")
    for name, rate in rates.items():
        print(f"{name:40}{rate:12,.0f}{rate / rates['Pillow, 1 process']:8.1f}{VIEWS_PER_STEP / rate * 1e6:14,.0f}")


if __name__ == "__main__":
    main()
