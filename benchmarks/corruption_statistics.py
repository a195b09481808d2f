"""How far our corruptions are from the original generator's, cell by cell.

    COUNTERPOINT_DATA=… python benchmarks/corruption_statistics.py [--seeds 1]
    COUNTERPOINT_DATA=… python benchmarks/corruption_statistics.py --size 224 [--seeds 4]

Four statistics are compared: rmse to the clean images, mean, standard deviation and high-frequency energy. Ours are
means over the seeds 0, 1, … The original's are in tests/corrupt/.

- 32: CIFAR-C, on CIFAR-10's test images 0 to 499. A value may differ by 3 % or by three times the spread over the
  original's seeds, whichever is larger. This takes about 20 s per seed.
- 224: ImageNet-C, on 16 crops of photographs that come with scikit-learn and scikit-image. With so few images the
  statistics change much from seed to seed. A value may differ by 0.02 % or by five times the standard error of the
  difference of both means, whichever is larger. This takes about 15 s per seed.
"""

import argparse
import json
import math
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import skimage
import sklearn.datasets
from numpy.typing import NDArray
from PIL import Image
from scipy import fft

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, corrupt, frost_source

Images = NDArray[np.uint8]
Cell = dict[str, list[float]]  # mean and standard deviation of each statistic

FILES = {32: "original_statistics.json", 224: "original_statistics_224.json"}
ORIGINAL_SEEDS = 4


@dataclass(frozen=True)
class Deviation:
    statistic: str
    ours: float
    original: float
    tolerance: float

    @property
    def relative(self) -> float:
        return self.ours / self.original - 1

    @property
    def of_tolerance(self) -> float:
        return abs(self.ours - self.original) / self.tolerance


def deviations(images_NHWC: Images, name: str, severity: int, *, seeds: int, frost_dir: Path | None) -> list[Deviation]:
    """The four statistics of one cell."""
    side = images_NHWC.shape[1]
    made = [corrupt(images_NHWC, name, severity, seed, frost_dir=frost_dir) for seed in range(seeds)]
    each = [statistics(corrupted_NHWC, images_NHWC) for corrupted_NHWC in made]
    ours = {key: float(np.mean([found[key] for found in each])) for key in each[0]}
    cells = _original(side)[name]
    limit = _limit_32 if side == 32 else _limit_224
    return [
        Deviation(key, ours[key], original, limit(key, cells, severity, seeds))
        for key, (original, _) in cells[severity - 1].items()
    ]


def _limit_32(key: str, cells: list[Cell], severity: int, _seeds: int) -> float:
    original, spread = cells[severity - 1][key]
    return max(0.03 * original, 3 * spread)


def _limit_224(key: str, cells: list[Cell], severity: int, seeds: int) -> float:
    """The spread over four seeds is itself uncertain, so that of all severities is taken together, in per cent."""
    variance = np.mean([(cell[key][1] / cell[key][0]) ** 2 for cell in cells])
    spread = math.sqrt(variance * ORIGINAL_SEEDS / (ORIGINAL_SEEDS - 1))
    error = spread * math.sqrt(1 / seeds + 1 / ORIGINAL_SEEDS)
    return max(2e-4, 5 * error) * cells[severity - 1][key][0]


def statistics(corrupted_NHWC: Images, clean_NHWC: Images) -> dict[str, float]:
    x, clean = corrupted_NHWC / 255, clean_NHWC / 255
    return {
        "rmse": float(np.sqrt(np.mean((x - clean) ** 2))),
        "mean": float(x.mean()),
        "std": float(x.std()),
        "hf_fft": _high_frequency_energy(corrupted_NHWC) / _high_frequency_energy(clean_NHWC),
    }


def _high_frequency_energy(images_NHWC: Images) -> float:
    """Above a quarter of the side. Each column of the half spectrum but the first and the last counts twice."""
    side = images_NHWC.shape[1]
    row, column = fft.fftfreq(side, 1 / side), np.arange(side // 2 + 1)
    weight_HW = np.where((column == 0) | (column == side // 2), 1, 2) * (np.hypot(row[:, None], column) > side / 4)
    spectrum_NCHW = fft.rfft2(images_NHWC.transpose(0, 3, 1, 2).astype(np.float64))
    return float(np.sum((spectrum_NCHW.real**2 + spectrum_NCHW.imag**2).sum(axis=(0, 1)) * weight_HW))


@cache
def _original(side: int) -> dict[str, list[Cell]]:
    path = Path(__file__).parents[1] / "tests" / "corrupt" / FILES[side]
    cells: dict[str, list[Cell]] = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return cells


def read_cifar10_test(data: Path, number: int) -> Images:
    records = np.fromfile(data / "cifar-10-batches-bin" / "test_batch.bin", np.uint8, count=number * 3073)
    return records.reshape(number, 3073)[:, 1:].reshape(number, 3, 32, 32).transpose(0, 2, 3, 1).copy()


def photograph_crops() -> Images:
    """The corners of 224 × 224 pixels of four photographs, the shorter side resized to 256.

    The order of the corners: left top, left bottom, right top, right bottom.
    """
    sklearns, skimages = Path(sklearn.datasets.__file__).parent / "images", Path(skimage.__file__).parent / "data"
    paths = [sklearns / "china.jpg", sklearns / "flower.jpg", skimages / "chelsea.png", skimages / "coffee.png"]
    ends = (slice(None, 224), slice(-224, None))
    crops: list[Images] = []
    for path in paths:
        with Image.open(path) as opened:
            size = [round(side * 256 / min(opened.size)) for side in opened.size]
            picture = np.asarray(opened.convert("RGB").resize((size[0], size[1]), Image.Resampling.BILINEAR))
        crops += [picture[rows, columns] for columns in ends for rows in ends]
    return np.stack(crops)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, choices=sorted(FILES), default=32)
    parser.add_argument("--seeds", type=int, default=1)
    arguments = parser.parse_args()
    if "COUNTERPOINT_DATA" not in os.environ:
        sys.exit("set COUNTERPOINT_DATA to the folder that holds cifar-10-batches-bin and frost")
    data = Path(os.environ["COUNTERPOINT_DATA"])
    images_NHWC = read_cifar10_test(data, 500) if arguments.size == 32 else photograph_crops()
    print(
        f"{arguments.seeds} seeds, frost: {frost_source()}; ours against the original, and the share of the tolerance"
    )
    print(f"{'':20}" + "".join(f"{key:>17}" for key in _original(arguments.size)["fog"][0]))
    worst = 0.0
    for name in CORRUPTIONS + EXTRA_CORRUPTIONS:
        for severity in SEVERITIES:
            cell = deviations(images_NHWC, name, severity, seeds=arguments.seeds, frost_dir=None)
            worst = max(worst, *(d.of_tolerance for d in cell))
            line = "".join(f"{100 * d.relative:+9.3f} %{d.of_tolerance:6.2f}" for d in cell)
            print(f"{name:18}{severity} {line}", flush=True)
    print(f"largest share of the tolerance: {worst:.2f}")


if __name__ == "__main__":
    main()
