"""How fast a user's images are decoded into the cache and read from it, and how much memory this takes.

    python benchmarks/image_folder.py [--images PATH] [--count 2000] [--size 224] [--batch 128] [--workers N]
    python benchmarks/image_folder.py --gigabytes 20

Without --images, the pictures are parts of the two photographs that come with scikit-learn: 2,000 JPEG files of 375 to
500 by 280 to 375 pixels. With it, the pictures are yours: a folder, a .csv or an .npz file. The cache is made in a
temporary folder on the disk of TMPDIR.

- Hashing and decoding are timed with one process and with all processes.
- Batches are read in a random order, as a training reads them. "Cold" is after the system was asked to forget the file,
  and "warm" is when the file is in the system's memory. RssAnon is the highest memory of the process itself.
- With --gigabytes the cache is first lengthened to that size, by repeating its own rows.
"""

import argparse
import gc
import os
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

# The processes that decode import this file. What needs torch is imported where it is used, so that they start fast.
if TYPE_CHECKING:
    from counterpoint.data import MappedSet


def make_photographs(folder: Path, count: int) -> Path:
    """JPEG files cut out of two photographs, a class for each."""
    from sklearn.datasets import load_sample_images

    generator = np.random.default_rng(0)
    photographs = load_sample_images().images
    for number in range(count):
        whole_HWC = photographs[number % 2]
        height, width = generator.integers(280, 376), generator.integers(375, 501)
        top, left = (generator.integers(0, n - k + 1) for n, k in zip(whole_HWC.shape, (height, width), strict=False))
        path = folder / "ab"[number % 2] / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(whole_HWC[top : top + height, left : left + width]).save(path, quality=90)
    return folder


def own_memory_mb() -> float:
    """The process's anonymous memory."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def forget(path: Path) -> None:
    """Ask the system to drop the file from its memory."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class HighestMemory:
    """Watches the process's anonymous memory while it is in use."""

    def __enter__(self) -> "HighestMemory":
        self.megabytes, self._done = own_memory_mb(), threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._done.wait(0.02):
            self.megabytes = max(self.megabytes, own_memory_mb())


def read_batches(images: "MappedSet", batch: int) -> float:
    """Images per second of one epoch in a random order, read as a training reads them."""
    from counterpoint.seeding import Stream

    order = Stream(0, "order").permutation(len(images))
    begin = time.perf_counter()
    for _ in images.batches(order.split(batch)):
        pass
    return len(images) / (time.perf_counter() - begin)


def lengthen(images: "MappedSet", gigabytes: float, path: Path) -> "MappedSet":
    """The images again and again in a file of this size, which is then read as the cache is."""
    import torch

    from counterpoint.data import MappedSet

    rows_RCHW = images.pixels_RCHW.numpy()
    copies = int(gigabytes * 1e9 / rows_RCHW.nbytes) + 1
    file = np.lib.format.open_memmap(path, "w+", np.uint8, (copies * len(rows_RCHW), *rows_RCHW.shape[1:]))
    for copy in range(copies):
        file[copy * len(rows_RCHW) : (copy + 1) * len(rows_RCHW)] = rows_RCHW
        file.flush()
    del file
    pixels_RCHW = torch.from_numpy(np.load(path, mmap_mode="c"))
    every = torch.arange(len(pixels_RCHW))
    return MappedSet(pixels_RCHW, every, every, every % 2, images.classes)


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
    parser.add_argument("--gigabytes", type=float)
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
        file = cache / key / "pixels.npy"
        if arguments.gigabytes:
            file = Path(made, "long.npy")
            images = lengthen(images, arguments.gigabytes, file)
        size_gb = images.pixels_RCHW.nbytes / 1e9
        gc.collect()
        print(f"the cache: {len(images):,} images, {size_gb:.1f} GB; RssAnon before reading {own_memory_mb():,.0f} MB")
        for state in ("cold", "warm"):
            if state == "cold":
                forget(file)
            with HighestMemory() as highest:
                rate = read_batches(images, arguments.batch)
            print(f"batches of {arguments.batch}, {state}: {rate:,.0f} images/s; RssAnon {highest.megabytes:,.0f} MB")


if __name__ == "__main__":
    main()
