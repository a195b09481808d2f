"""A set over a file is the set in memory, and stays out of memory."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.data import ImageSet, MappedSet
from counterpoint.errors import InputError

CLASSES = ("a", "b", "c")
ROWS = torch.tensor([5, 2, 3, 9])
SIDE_BY_SIDE = torch.tensor([2, 3, 4, 5])


@pytest.fixture(name="pixels_RCHW")
def a_file_of_pixels(tmp_path: Path) -> np.ndarray:
    np.save(tmp_path / "pixels.npy", np.random.default_rng(0).integers(0, 256, (10, 3, 4, 4), dtype=np.uint8))
    loaded: np.ndarray = np.load(tmp_path / "pixels.npy", mmap_mode="c")
    return loaded


def mapped(pixels_RCHW: np.ndarray, rows_N: torch.Tensor) -> MappedSet:
    return MappedSet(torch.from_numpy(pixels_RCHW), rows_N, torch.arange(10, 14), torch.tensor([0, 2, 1, 2]), CLASSES)


def in_memory(pixels_RCHW: np.ndarray, rows_N: torch.Tensor) -> ImageSet:
    return ImageSet(torch.from_numpy(pixels_RCHW.copy())[rows_N], torch.tensor([0, 2, 1, 2]), CLASSES)


def assert_same(one: MappedSet | ImageSet, other: ImageSet) -> None:
    assert len(one) == len(other)
    assert torch.equal(one.images_NCHW, other.images_NCHW)
    assert torch.equal(one.labels_N, other.labels_N)
    assert one.classes == other.classes


@pytest.mark.parametrize("rows_N", [ROWS, SIDE_BY_SIDE], ids=["scattered", "side by side"])
def test_it_behaves_as_the_set_in_memory_does(pixels_RCHW: np.ndarray, rows_N: torch.Tensor) -> None:
    ours, plain = mapped(pixels_RCHW, rows_N), in_memory(pixels_RCHW, rows_N)
    assert_same(ours, plain)
    assert repr(ours) == repr(plain).replace("ImageSet", "MappedSet")
    assert_same(ours.to("cpu"), plain)
    for count in (None, 0, 3, 9):
        assert_same(ours.first(count), plain.first(count))
    for chosen in (torch.tensor([3, 0]), torch.tensor([], dtype=torch.int64), torch.tensor([True, False, True, False])):
        assert_same(ours.select(chosen), plain.select(chosen))
    picked = torch.tensor([2, 2, 0])
    assert torch.equal(ours.batch(picked), plain.images_NCHW[picked])
    assert ours.select(torch.tensor([3, 0])).numbers_N.tolist() == [13, 10]


def test_images_side_by_side_are_not_copied(pixels_RCHW: np.ndarray) -> None:
    ours = mapped(pixels_RCHW, SIDE_BY_SIDE)
    begin = torch.from_numpy(pixels_RCHW).data_ptr()
    assert ours.images_NCHW.data_ptr() == begin + 2 * 3 * 4 * 4
    assert ours.first(2).images_NCHW.data_ptr() == begin + 2 * 3 * 4 * 4
    assert ours.select(torch.tensor([1, 2])).images_NCHW.data_ptr() == begin + 3 * 3 * 4 * 4


def test_columns_of_different_lengths_are_refused(pixels_RCHW: np.ndarray) -> None:
    with pytest.raises(InputError, match="there are 3 rows, 4 numbers and 4 labels"):
        mapped(pixels_RCHW, ROWS[:3])


READING = """
import sys
import numpy as np, torch
from counterpoint.data import MappedSet

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon"))

torch.set_num_threads(1)
pixels = torch.from_numpy(np.load(sys.argv[1], mmap_mode="c"))
order = torch.randperm(len(pixels), generator=torch.Generator().manual_seed(0))
scattered = MappedSet(pixels, order, order, order % 2, ("a", "b"))
ordered = MappedSet(pixels, torch.arange(len(pixels)), order, order % 2, ("a", "b"))
before, total = anonymous(), 0
for places in torch.arange(len(pixels)).split(32):
    total += int(scattered.batch(places).sum())
total += sum(int(batch.sum()) for batch in ordered.images_NCHW.split(32))
print(total, anonymous() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="RssAnon is Linux's")
def test_a_file_is_read_without_taking_memory(tmp_path: Path) -> None:
    path = tmp_path / "pixels.npy"
    pixels = np.lib.format.open_memmap(path, "w+", np.uint8, (1024, 3, 224, 224))  # 154 MB, of which the disk holds few
    pixels[::100, 0, 0, 0] = 1
    pixels.flush()
    done = subprocess.run([sys.executable, "-c", READING, path], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    total, grown_kb = map(int, done.stdout.split())
    assert total == 2 * len(range(0, 1024, 100))
    assert grown_kb < 32 * 1024, "a few batches, and not the file"
