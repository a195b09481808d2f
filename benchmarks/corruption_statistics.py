"""How far our corruptions are from the original generator's, cell by cell.

    COUNTERPOINT_DATA=… python benchmarks/corruption_statistics.py [--seed 0]

Four statistics of CIFAR-10's test images 0 to 499 are compared with those in tests/corrupt/original_statistics.json:
rmse to the clean images, mean, standard deviation and high-frequency energy. A value may differ by 3 % or by three
times the spread over the original's seeds, whichever is larger. It takes about 20 s.
"""

import argparse
import json
import os
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, corrupt, frost_source

Images = NDArray[np.uint8]

ORIGINAL = Path(__file__).parents[1] / "tests" / "corrupt" / "original_statistics.json"
SIDE = 32
HIGH_FREQUENCY = 8


@dataclass(frozen=True)
class Deviation:
    statistic: str
    ours: float
    original: float
    spread: float

    @property
    def relative(self) -> float:
        return self.ours / self.original - 1

    @property
    def of_tolerance(self) -> float:
        return abs(self.ours - self.original) / max(0.03 * self.original, 3 * self.spread)


def deviations(images_NHWC: Images, name: str, severity: int, *, seed: int, frost_dir: Path | None) -> list[Deviation]:
    """The four statistics of one cell."""
    ours = statistics(corrupt(images_NHWC, name, severity, seed, frost_dir=frost_dir), images_NHWC)
    original = _original()[name][severity - 1]
    return [Deviation(key, ours[key], *original[key]) for key in original]


def statistics(corrupted_NHWC: Images, clean_NHWC: Images) -> dict[str, float]:
    x, clean = corrupted_NHWC / 255, clean_NHWC / 255
    return {
        "rmse": float(np.sqrt(np.mean((x - clean) ** 2))),
        "mean": float(x.mean()),
        "std": float(x.std()),
        "hf_fft": _high_frequency_energy(corrupted_NHWC) / _high_frequency_energy(clean_NHWC),
    }


def _high_frequency_energy(images_NHWC: Images) -> float:
    frequency = np.fft.fftfreq(SIDE, 1 / SIDE)
    high_HW = np.hypot(frequency[:, None], frequency) > HIGH_FREQUENCY
    return float(np.sum(np.abs(np.fft.fft2(images_NHWC, axes=(1, 2))[:, high_HW]) ** 2))


@cache
def _original() -> dict[str, list[dict[str, list[float]]]]:
    cells: dict[str, list[dict[str, list[float]]]] = json.loads(ORIGINAL.read_text(encoding="utf-8"))["cells"]
    return cells


def read_cifar10_test(data: Path, number: int) -> Images:
    records = np.fromfile(data / "cifar-10-batches-bin" / "test_batch.bin", np.uint8, count=number * 3073)
    return records.reshape(number, 3073)[:, 1:].reshape(number, 3, SIDE, SIDE).transpose(0, 2, 3, 1).copy()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    seed = parser.parse_args().seed
    if "COUNTERPOINT_DATA" not in os.environ:
        sys.exit("set COUNTERPOINT_DATA to the folder that holds cifar-10-batches-bin")
    images_NHWC = read_cifar10_test(Path(os.environ["COUNTERPOINT_DATA"]), 500)
    print(f"seed {seed}, frost: {frost_source()}; ours against the original, and the share of the tolerance")
    print(f"{'':20}" + "".join(f"{key:>17}" for key in _original()["fog"][0]))
    worst = 0.0
    for name in CORRUPTIONS + EXTRA_CORRUPTIONS:
        for severity in SEVERITIES:
            cell = deviations(images_NHWC, name, severity, seed=seed, frost_dir=None)
            worst = max(worst, *(d.of_tolerance for d in cell))
            print(f"{name:18}{severity} " + "".join(f"{100 * d.relative:+9.2f} %{d.of_tolerance:6.2f}" for d in cell))
    print(f"largest share of the tolerance: {worst:.2f}")


if __name__ == "__main__":
    main()
