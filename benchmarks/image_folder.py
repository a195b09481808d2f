"""Images per second into the cache of a user's images and out of it, cold and warm.

    python benchmarks/image_folder.py [--images PATH] [--count 2000] [--size 224] [--batch 128] [--workers N]

Without --images, pictures of 500 × 375 pixels are made up: 2,000 JPEG files that look as busy as photographs. With it,
the pictures are yours: a folder, a .csv or an .npz file. The cache is made in a temporary folder on the disk of TMPDIR.

- Decoding is timed by one process and by all, with hashing, and compared.
- Batches are read in a random order, as a training reads them: cold, after the system was asked to forget the file,
  and warm, when it is in the system's memory. RssAnon is the memory that this takes of its own.
"""

import argparse
import gc
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

# The processes that decode import this file. What needs torch is imported where it is used, so that they start fast.
if TYPE_CHECKING:
    from counterpoint.data import MappedSet


def make_photographs(folder: Path, count: int) -> Path:
    """JPEG files of 500 × 375 pixels in two classes: noise at three scales, which takes about 60 kB each."""
    generator = np.random.default_rng(0)
    for number in range(count):
        layers = [
            np.asarray(Image.fromarray(generator.integers(0, 256, (h, w, 3), dtype=np.uint8)).resize((500, 375)))
            for h, w in ((6, 8), (47, 63), (375, 500))
        ]
        pixels = np.average(layers, axis=0, weights=(0.6, 0.3, 0.1)).astype(np.uint8)
        path = folder / "ab"[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(path, quality=90)
    return folder


def own_memory_mb() -> float:
    """The process's anonymous memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def forget(path: Path) -> None:
    """Ask the system to drop the file from its memory."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_batches(images: "MappedSet", batch: int) -> float:
    """Images per second of one epoch in a random order."""
    from counterpoint.seeding import Stream

    order = Stream(0, "order").permutation(len(images))
    begin = time.perf_counter()
    for places_B in order.split(batch):
        images.batch(places_B)
    return len(images) / (time.perf_counter() - begin)


def seconds_to_load(source: Path, size: int, cache: Path, workers: int) -> tuple[float, "MappedSet", str]:
    from counterpoint.data import load_images

    begin = time.perf_counter()
    data = load_images(source, size, val=0, test=0, cache=cache, skip_bad=True, workers=workers)
    return time.perf_counter() - begin, data.train, data.key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as made:
        source = arguments.images or make_photographs(Path(made, "photographs"), arguments.count)
        rates = []
        for workers in sorted({1, arguments.workers}):
            cache = Path(made, f"cache-{workers}")
            seconds, images, key = seconds_to_load(source, arguments.size, cache, workers)
            rates.append(len(images) / seconds)
            print(f"hash and decode, {workers} workers: {rates[-1]:,.0f} images/s ({rates[-1] / rates[0]:.2f} ×)")
        size_mb = images.pixels_RCHW.nbytes / 1e6
        del images
        gc.collect()
        forget(cache / key / "pixels.npy")
        seconds, images, _ = seconds_to_load(source, arguments.size, cache, arguments.workers)
        print(f"open again: {seconds:.2f} s for {len(images):,} images, {size_mb:,.0f} MB")
        before = own_memory_mb()
        for state in ("cold", "warm"):
            rate = read_batches(images, arguments.batch)
            print(f"batches of {arguments.batch}, {state}: {rate:,.0f} images/s")
        print(f"RssAnon grew by {own_memory_mb() - before:.0f} MB")


if __name__ == "__main__":
    main()
