"""How often intervals hold the truth where images belong together: over groups, and as if images were independent.

    python benchmarks/groups_coverage.py [--sets 100]

Each image has a difficulty and some luck. A part of both is shared by its group, such as all pictures of a patient; the
rest is shared by the image's cells and by the runs as in coverage.py. So the truth is known too, for the bins that the
sample gave. The sizes of the groups are geometric: some have one image, and some several times the mean. They do not
depend on how difficult a group is.

Each case is a number of groups, the mean number of images in each, and the share of all variance that the images of a
group have in common. A pair of figures is the coverage over groups, and over images as if there were no groups. -C are
3 corruptions at 2 severities. The last column is the noise floor's distance from the truth, which is the mean ECE of
calibrated runs with the same confidences, in % of it. 100 sets take about 15 minutes on one core. A coverage of 95 %
then has a standard error of 2.2 points.
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from coverage import Floats, Simulated, World, grid_of
from noise_floor import CalibratedTwin
from scipy.special import ndtr, ndtri

from counterpoint.metrics import (
    Interval,
    calibration_differences,
    ece,
    intervals_over_cells,
    noise_floor,
    paired_differences,
)
from counterpoint.metrics.scores import Grid

RUNS = {
    "nearly calibrated": (Simulated(0, 0.95), Simulated(1, 0.9)),
    "far off": (Simulated(0, 0.6), Simulated(1, 0.8)),
}
"""The run that the intervals are of, and the one that it is compared with."""
CASES = ((12, 10, 0.3), (40, 10, 0.3), (40, 50, 0.3), (40, 50, 0.6), (200, 10, 0.3))
CLEAN, SHIFTED = World.of(1, 1), World.of(3, 2)
NAME = "ece_width15_debiased"


@dataclass(frozen=True)
class Case:
    groups: int
    images: int  # in each group, on average
    share: float

    def draw(self, world: World, runs: Sequence[Simulated], rng: np.random.Generator) -> list[Grid]:
        """Each run's scores on the same images; they hold no NLL and no Brier score."""
        sizes = rng.geometric(1 / self.images, self.groups)
        while 2 * sizes.max() > sizes.sum():  # there would be no interval
            sizes = rng.geometric(1 / self.images, self.groups)
        group_N = np.repeat(np.arange(self.groups), sizes)
        shape = (len(group_N), *world.odds_CS.shape)

        def parts(of_group: float, of_image: float, of_cell: float) -> Floats:
            """The sum of a normal variable per group, one per image and one per cell, of these variances."""
            groups_N11 = rng.standard_normal((self.groups, 1, 1))[group_N]
            images_N11, cells = rng.standard_normal((len(group_N), 1, 1)), rng.standard_normal(shape)
            return of_group**0.5 * groups_N11 + of_image**0.5 * images_N11 + of_cell**0.5 * cells

        of_group, rest = self.share, 1 - self.share
        difficulty, luck = (
            parts(0.7 * of_group, 0.6 * rest, 0.1 * rest),
            parts(0.5 * of_group, 0.4 * rest, 0.15 * rest),
        )
        own = {
            run.network: (
                parts(0.3 * of_group, 0.15 * rest, 0.15 * rest),
                parts(0.5 * of_group, 0.35 * rest, 0.1 * rest),
            )
            for run in runs
        }
        grids: list[Grid] = []
        for run in runs:
            own_difficulty, own_luck = own[run.network]
            odds_NCS = world.odds_CS + world.spread * (difficulty + own_difficulty)
            grid = grid_of(run.confidence(odds_NCS), ndtr(luck + own_luck) < run.chance(odds_NCS))
            grids.append({name: [replace(cell, group_N=group_N) for cell in cells] for name, cells in grid.items()})
        return grids


def true_error(world: World, run: Simulated) -> float:
    quantiles = world.spread * ndtri((np.arange(4000) + 0.5) / 4000)
    return float(np.mean([1 - run.chance(odds + quantiles).mean() for odds in world.odds_CS.ravel()]))


def without_groups(grid: Grid) -> Grid:
    return {name: [replace(cell, group_N=None) for cell in cells] for name, cells in grid.items()}


def found_and_true(world: World, runs: Sequence[Simulated], grids: Sequence[Grid]) -> dict[str, tuple[Interval, float]]:
    """Each figure's interval, and its true value."""
    ours, other = grids
    over_cells, errors = intervals_over_cells(ours), [true_error(world, run) for run in runs]
    eces = [world.true_errors(run, grid, "width")[0] for run, grid in zip(runs, grids, strict=True)]
    figures = {"error": (over_cells["error"], errors[0]), "ECE": (over_cells[NAME], eces[0])}
    if world is SHIFTED:
        differences: Mapping[str, Interval] = calibration_differences(ours, other)
    else:
        differences = paired_differences(ours["0"][0], other["0"][0])
        figures["error, paired"] = differences["error"], errors[0] - errors[1]
    return figures | {"ECE, paired": (differences[NAME], eces[0] - eces[1])}


def simulate(
    world: World, case: Case, runs: Sequence[Simulated], sets: int, seed: int
) -> dict[str, tuple[float, float]]:
    """Of each figure the coverage over groups, and over images."""
    rng, held = np.random.default_rng(seed), dict[str, list[tuple[bool, bool]]]()
    for _ in range(sets):
        grids = case.draw(world, runs, rng)
        alone = found_and_true(world, runs, [without_groups(grid) for grid in grids])
        for name, over_groups in found_and_true(world, runs, grids).items():
            held.setdefault(name, []).append((holds(*over_groups), holds(*alone[name])))
    return {name: tuple(np.mean(rows, axis=0)) for name, rows in held.items()}


def holds(found: Interval, truth: float) -> bool:
    """A rounding error is no miss."""
    return found.low - 1e-9 <= truth <= found.high + 1e-9


def floors(case: Case, run: Simulated, sets: int, seed: int) -> tuple[float, float]:
    """How far the noise floor over groups is off, and the one over images, as shares of the truth."""
    rng, rows = np.random.default_rng(seed), []
    twin = CalibratedTwin(run.network, run.temperature)
    for number in range(sets):
        (scores,), (calibrated,) = (grid["0"] for grid in case.draw(CLEAN, (run, twin), rng))
        over_groups, over_images = (
            noise_floor(scores.confidence, scores.correct, simulations=50, seed=number, groups=groups).ece_mean
            for groups in (scores.group_N, None)
        )
        rows.append((ece(calibrated.confidence, calibrated.correct), over_groups, over_images))
    truth, *found = np.mean(rows, axis=0)
    over_groups, over_images = (float(floor / truth - 1) for floor in found)
    return over_groups, over_images


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, nargs="+", default=range(len(CASES)), metavar="PLACE")
    asked = parser.parse_args()
    columns = ("error", "ECE", "error, paired", "ECE, paired", "-C error", "-C ECE", "-C ECE, paired", "noise floor")
    print(f"{asked.sets} sets; coverage in %, over groups / over images")
    print(f"{'':40}" + "".join(f"{name:>16}" for name in columns))
    for case in (Case(*CASES[place]) for place in asked.cases):
        for name, runs in RUNS.items():
            clean = simulate(CLEAN, case, runs, asked.sets, asked.seed)
            shifted = simulate(SHIFTED, case, runs, asked.sets, asked.seed)
            found = clean | {f"-C {figure}": pair for figure, pair in shifted.items()}
            entries = [" / ".join(f"{100 * one:.1f}" for one in found[column]) for column in columns[:-1]]
            entries.append(" / ".join(f"{100 * one:+.1f}" for one in floors(case, runs[0], asked.sets, asked.seed)))
            called = f"{case.groups} × {case.images}, {case.share:.0%}, {name}"
            print(f"{called:40}" + "".join(f"{entry:>16}" for entry in entries), flush=True)


if __name__ == "__main__":
    main()
