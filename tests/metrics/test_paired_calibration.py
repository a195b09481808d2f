"""The differences of calibration errors over dependent cells, and how their plug-in values scatter."""

import math
import runpy
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores, calibration_differences, ece, ece_rms
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.clustered import Ece, EceRms, ImageSums, image_sums
from counterpoint.metrics.paired_calibration import calibration_parts, differences_of_parts
from counterpoint.metrics.scores import Grid, join_scores

NAMES = ["ece_width15_debiased", "ece_rms_width15_debiased", "ece_mass15_debiased", "ece_rms_mass15_debiased"]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "coverage.py"))


def drawn(script: dict[str, Any], scenario: str, images: int, shape: tuple[int, int], seed: int = 0) -> list[Grid]:
    return script["World"].of(*shape).draw(script["SCENARIOS"][scenario], images, np.random.default_rng(seed))


def as_single_rows(grid: Grid) -> Grid:
    """The same rows, each taken for an image of its own."""
    return {name: [join_scores(cells)] for name, cells in grid.items()}


def plug_in_bootstrap(ours: Grid, other: Grid, rng: np.random.Generator) -> tuple[float, float]:
    """The percentile interval of the plug-in ECE's difference, over images with all their cells."""
    weight = rng.multinomial(ours["0"][0].correct.size, np.full(ours["0"][0].correct.size, 1 / len(ours["0"][0])), 200)
    differences = np.zeros(200)
    for sign, grid in ((1, ours), (-1, other)):
        sums = image_sums(grid, 15, "width")
        bins = len(sums.surplus_B)
        surplus_NB = sums.noise_ND[:, :bins] * math.sqrt(sums.images * (sums.images - 1)) + sums.surplus_B
        differences += sign * np.abs(weight @ surplus_NB / sums.images).sum(axis=1) / sums.corruptions
    return tuple(np.quantile(differences, [0.025, 0.975]))


@pytest.mark.parametrize(
    ("scenario", "images", "shape"), [("one calibrated", 400, (2, 3)), ("almost the same network", 1000, (1, 1))]
)
def test_coverage(script: dict[str, Any], scenario: str, images: int, shape: tuple[int, int]) -> None:
    """results/simulations/coverage.txt has the figures of many more samples."""
    found = script["simulate"](script["World"].of(*shape), script["SCENARIOS"][scenario], images, 25, 0)
    assert (script["coverage"](found) >= 0.88).all()


def test_the_plug_in_bootstrap_would_miss(script: dict[str, Any]) -> None:
    """So the test of coverage can fail: noise makes the calibrated run look off, and resampling adds to it."""
    world, runs, rng = script["World"].of(2, 3), script["SCENARIOS"]["one calibrated"], np.random.default_rng(0)
    covered = 0
    for _ in range(25):
        grids = world.draw(runs, 400, rng)
        ours, other = (world.true_errors(*one, "width")[0] for one in zip(runs, grids, strict=True))
        low, high = plug_in_bootstrap(grids[0], grids[1], rng)
        covered += low <= ours - other <= high
    assert covered < 0.8 * 25


def test_rows_are_not_taken_for_images(script: dict[str, Any]) -> None:
    """An image's cells share its difficulty and luck, so that they tell less than as many images."""
    grids = drawn(script, "both far off", 1000, (1, 5))
    found = calibration_differences(grids[0], grids[1])
    rows = calibration_differences(as_single_rows(grids[0]), as_single_rows(grids[1]))
    for name in NAMES:
        assert found[name].value == pytest.approx(rows[name].value, abs=0.005)
    for name in ("ece_width15_debiased", "ece_mass15_debiased"):
        assert found[name].high - found[name].low > 1.15 * (rows[name].high - rows[name].low)


def test_order_and_sign(script: dict[str, Any]) -> None:
    ours, other = drawn(script, "both far off", 2000, (2, 3))
    found, back = calibration_differences(ours, other), calibration_differences(other, ours)
    assert list(found) == NAMES
    order = np.random.default_rng(1).permutation(2000)

    def shuffled(grid: Grid) -> Grid:
        return {
            name: [ImageScores(c.confidence[order], c.correct[order], c.nll, c.brier) for c in cells]
            for name, cells in grid.items()
        }

    again = calibration_differences(shuffled(ours), shuffled(other))
    unpaired = calibration_differences(ours, shuffled(other))
    for name in NAMES:
        one = found[name]
        assert one.low < one.value < one.high
        assert [-back[name].high, -back[name].low] == pytest.approx([one.low, one.high], abs=1e-7)
        assert [again[name].low, again[name].high] == pytest.approx([one.low, one.high], abs=1e-7)
        assert unpaired[name].value == pytest.approx(one.value, abs=1e-7)
        assert unpaired[name].high - unpaired[name].low > 1.01 * (one.high - one.low)


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_the_debiased_values_of_runs_far_off_are_the_plug_in_ones(binning: Binning) -> None:
    rng = np.random.default_rng(0)
    grids = [
        {name: [ImageScores(np.full(5000, c), rng.random(5000) < 0.5, *np.zeros((2, 5000)))] for name in "ab"}
        for c in (0.9, 0.8)
    ]
    found = calibration_differences(grids[0], grids[1])
    for name, plug_in in (("ece", ece), ("ece_rms", ece_rms)):
        values = [np.mean([plug_in(c.confidence, c.correct, 15, binning) for (c,) in g.values()]) for g in grids]
        assert found[f"{name}_{binning}15_debiased"].value == pytest.approx(values[0] - values[1], abs=2e-4)


def test_a_run_and_itself_are_not_proven_equal(script: dict[str, Any]) -> None:
    """Two more images count, each of which only one run has right."""
    (run, _) = drawn(script, "both far off", 2000, (2, 2))
    for found in calibration_differences(run, run).values():
        assert found.value == 0
        assert found.high == -found.low >= 1.959 * math.sqrt(2) / 2000


def sums_by_loop(grid: Grid, bins: int) -> dict[tuple[str, int], list[float]]:
    """Each image's sum of correct − confidence in each equal-width bin, over the number of severities."""
    sums: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0] * len(next(iter(grid.values()))[0]))
    for name, cells in grid.items():
        for cell in cells:
            for i, (c, right) in enumerate(zip(cell.confidence.tolist(), cell.correct.tolist(), strict=True)):
                sums[name, math.ceil(c * bins)][i] += (right - c) / len(cells)
    return sums


def test_sums_are_the_plain_loop(script: dict[str, Any]) -> None:
    grid, _ = drawn(script, "one calibrated", 50, (3, 4))
    sums, expected = image_sums(grid, 15, "width"), np.array([v for _, v in sorted(sums_by_loop(grid, 15).items())])
    bins = len(expected)
    assert sums.surplus_B == pytest.approx(expected.mean(axis=1))
    assert sums.own_covariance[:bins, :bins] == pytest.approx(np.cov(expected) / 50)
    assert Ece(sums).observed == pytest.approx(np.mean([ece(*_both(cells)) for cells in grid.values()]))
    assert EceRms(sums).observed == pytest.approx(np.mean([ece_rms(*_both(cells)) for cells in grid.values()]))


def _both(cells: Any) -> tuple[Any, Any]:
    rows = join_scores(cells)
    return rows.confidence, rows.correct


def _with_fixed_shares(sums: ImageSums) -> ImageSums:
    noise_ND = sums.noise_ND.copy()
    noise_ND[:, len(sums.share_B) :] = 0
    return replace(sums, noise_ND=noise_ND)


@pytest.mark.parametrize("size", [0.0, 1.0, 4.0])
def test_scatter_is_that_of_drawn_samples(script: dict[str, Any], size: float) -> None:
    """Mean, variance and covariance between the runs, against draws with the same covariance."""
    grids = drawn(script, "almost the same network", 800, (2, 3))
    sums = [_with_fixed_shares(image_sums(grid, 15, "width")) for grid in grids]
    normal = np.random.default_rng(1).standard_normal((4000, 800))  # not the seed that drew the images
    for kind in (Ece, EceRms):
        statistics, values = [kind(one) for one in sums], []
        population = [size * s.deviation * np.where(np.arange(len(s.deviation)) % 3, 1, -1) for s in statistics]
        for s, surplus in zip(statistics, population, strict=True):
            drawn_SB = surplus + (normal @ s.sums.noise_ND)[:, : len(surplus)]
            if kind is Ece:
                values.append(np.abs(drawn_SB).sum(axis=1) / 2)
            else:
                values.append(np.sqrt(drawn_SB**2 / s.sums.share_B @ s.sums.corruption_BC).mean(axis=1))
            scatter = s.scatter(surplus)
            assert scatter.mean == pytest.approx(values[-1].mean(), rel=0.02)
            assert math.sqrt(scatter.variance) == pytest.approx(values[-1].std(), rel=0.06)
        expected = np.cov(values)
        found = statistics[0].covariance(statistics[1], *population)  # type: ignore[arg-type]
        assert found == pytest.approx(expected[0, 1], abs=0.06 * math.sqrt(expected[0, 0] * expected[1, 1]))


def without_each_image(kind: type[Ece] | type[EceRms], sums: ImageSums) -> list[float]:
    """N − 1 times what the plug-in value loses without an image, in the same bins, for each image: the slow twin of its
    influence."""
    images, bins = sums.images, len(sums.surplus_B)
    rows_ND = sums.noise_ND * math.sqrt(images * (images - 1)) + np.concatenate((sums.surplus_B, sums.share_B))
    found = []
    for i in range(images):
        rest_D = np.delete(rows_ND, i, axis=0).mean(axis=0)
        rest = replace(sums, surplus_B=rest_D[:bins], share_B=rest_D[bins:])
        found.append((images - 1) * (kind(sums).observed - kind(rest).observed))
    return found


@pytest.mark.parametrize("kind", [Ece, EceRms])
def test_an_influence_is_what_the_value_loses_without_the_image(
    script: dict[str, Any], kind: type[Ece] | type[EceRms]
) -> None:
    grid, _ = drawn(script, "both far off", 300, (2, 2))
    confident = {
        name: [replace(c, confidence=0.5 + c.confidence / 2, correct=c.correct & (c.confidence < 0.95)) for c in cells]
        for name, cells in grid.items()
    }
    sums = image_sums(confident, 3, "mass")  # three bins, all far off
    expected = np.array(without_each_image(kind, sums))
    influence = kind(sums).influence(sums.surplus_B) * math.sqrt(sums.images * (sums.images - 1))
    assert influence.sum() == pytest.approx(0, abs=1e-9)
    assert influence == pytest.approx(expected, abs=0.02 * expected.std())


@pytest.mark.parametrize(
    ("scenario", "longer"),
    [
        ("one calibrated", 1.03),
        ("both far off", 1.01),
        ("equally far off", 1.01),
        ("under- and over-confident", 1.01),
        ("a small difference", 1.05),
        ("both calibrated", 1.05),
        ("almost the same network", 2.0),
    ],
)
def test_each_runs_parts_give_the_difference(script: dict[str, Any], scenario: str, longer: float) -> None:
    """The same values, and intervals that are not shorter. Of two networks they are hardly longer."""
    for seed in range(2):
        ours, other = drawn(script, scenario, 1000, (3, 5), seed)
        expected = calibration_differences(ours, other)
        found = differences_of_parts(calibration_parts(ours), calibration_parts(other))
        assert list(found) == NAMES
        for name, one in found.items():
            assert one.value == expected[name].value
            for length, least in (
                (one.high - one.value, expected[name].high - one.value),
                (one.value - one.low, one.value - expected[name].low),
            ):
                assert least * (1 - 1e-9) <= length <= longer * least


def test_parts_are_paired(script: dict[str, Any]) -> None:
    """Image i of both: in another order the interval is that of runs on other images, and longer."""
    ours, other = drawn(script, "both far off", 2000, (2, 3))
    one, two = calibration_parts(ours), calibration_parts(other)
    mixed = {name: replace(part, influence_N=np.roll(part.influence_N, 1)) for name, part in two.items()}
    paired, unpaired = differences_of_parts(one, two), differences_of_parts(one, mixed)
    for name in NAMES:
        assert unpaired[name].high - unpaired[name].low > 1.01 * (paired[name].high - paired[name].low)


def test_nonsense_is_refused() -> None:
    def grid(images: int, corruptions: int = 1) -> Grid:
        cell = ImageScores(np.full(images, 0.5), np.ones(images, dtype=bool), *np.zeros((2, images)))
        return {str(i): [cell] for i in range(corruptions)}

    with pytest.raises(InputError, match="3 and 4 images; they must be evaluated on the same ones"):
        calibration_differences(grid(3), grid(4))
    with pytest.raises(InputError, match="1 and 2 corruptions; they must be evaluated on the same ones"):
        calibration_differences(grid(3), grid(3, 2))
    with pytest.raises(InputError, match="at least two"):
        calibration_differences(grid(1), grid(1))
    with pytest.raises(InputError, match="3 and 4 images; they must be evaluated on the same ones"):
        differences_of_parts(calibration_parts(grid(3)), calibration_parts(grid(4)))
    with pytest.raises(InputError, match="at least two"):
        calibration_parts(grid(1))
    with pytest.raises(InputError, match=r"the cells have \[3, 4\] images"):
        calibration_differences({"a": [grid(3)["0"][0], grid(4)["0"][0]]}, grid(3))


def test_few_images_have_an_interval() -> None:
    for images in (2, 3, 30):
        rng = np.random.default_rng(images)
        grids: list[Grid] = [
            {"a": [ImageScores(rng.random(images), rng.random(images) < 0.7, *np.zeros((2, images)))] * 2}
            for _ in range(2)
        ]
        for found in calibration_differences(grids[0], grids[1]).values():
            assert -1 <= found.low <= found.value <= found.high <= 1
        for found in differences_of_parts(*map(calibration_parts, grids)).values():
            assert -1 <= found.low <= found.value <= found.high <= 1
