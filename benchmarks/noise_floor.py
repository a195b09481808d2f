"""How far the noise floor on corrupted images is from the truth, on simulated runs whose cells depend on each other.

    python benchmarks/noise_floor.py [--images 2000] [--corruptions 3] [--severities 5] [--sets 400]

The truth is the mean ECE of calibrated runs: they have the confidences of the simulated run, and as much luck in common
between the cells of an image. The table says by how many percent the floor is above it or below it: as it is, and as it
would be if the cells of an image were taken as independent. 400 sets of the default size take 90 seconds on one
core. Their mean is then known to about 1 %.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from coverage import Floats, Simulated, World

from counterpoint.metrics import ece, noise_floor
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.scores import Grid, join_scores


class CalibratedTwin(Simulated):
    """With the same confidences, each of which is the chance to be right."""

    def chance(self, odds: Floats) -> Floats:
        return self.confidence(odds)


RUNS = {"calibrated": 1.0, "over-confident": 0.67, "far over-confident": 0.4, "under-confident": 1.6}
"""The temperature of each."""
AGGREGATES = ("by-corruption", "pooled")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("images", 2000), ("corruptions", 3), ("severities", 5), ("sets", 400), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=default)
    asked = parser.parse_args()
    world, rng = World.of(asked.corruptions, asked.severities), np.random.default_rng(asked.seed)
    print("floor − truth in % of the truth (with independent cells), ECE with equal-width / equal-mass bins")
    print(f"{'':20}" + "".join(f"{aggregate:>32}" for aggregate in AGGREGATES))
    for name, temperature in RUNS.items():
        runs = (Simulated(0, temperature), CalibratedTwin(0, temperature))
        sets = [_of_set(world.draw(runs, asked.images, rng), seed) for seed in range(asked.sets)]
        found = np.mean(sets, axis=0)
        columns = []
        for of_aggregate in found:
            above = [[100 * (floor / truth - 1) for floor in floors] for truth, *floors in of_aggregate]
            columns.append(" / ".join(f"{floor:+.1f} ({independent:+.1f})" for floor, independent in above))
        print(f"{name:20}" + "".join(f"{column:>32}" for column in columns), flush=True)


def _of_set(grids: Sequence[Grid], seed: int) -> Floats:
    """For each aggregate and binning: the twin's ECE, the run's floor, and the floor with independent cells.

    The floors of each set have other draws, so that their noise averages out over the sets.
    """
    grid, twin = grids
    return np.array([_of_grid(grid, twin, seed), _of_grid(_together(grid), _together(twin), seed)])


def _together(grid: Grid) -> Grid:
    return {"all": [cell for cells in grid.values() for cell in cells]}


def _of_grid(grid: Grid, twin: Grid, seed: int) -> Floats:
    binnings: tuple[Binning, ...] = ("width", "mass")
    rows = []
    for name, cells in grid.items():
        run, calibrated, images = join_scores(cells), join_scores(twin[name]), np.tile(range(len(cells[0])), len(cells))
        rows.append(
            [
                (
                    ece(calibrated.confidence, calibrated.correct, 15, binning),
                    noise_floor(run.confidence, run.correct, 15, binning, 50, seed, images).ece_mean,
                    noise_floor(run.confidence, run.correct, 15, binning, 50, seed).ece_mean,
                )
                for binning in binnings
            ]
        )
    return np.mean(rows, axis=0)


if __name__ == "__main__":
    main()
