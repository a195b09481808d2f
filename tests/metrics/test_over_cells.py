"""The figures of one run over dependent cells, with their intervals."""

import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from counterpoint.errors import InputError
from counterpoint.metrics import Interval, aggregate, ece_debiased, ece_rms_debiased, intervals_over_cells
from counterpoint.metrics.scores import Grid, ImageScores, join_scores

CALIBRATION = ["ece_width15_debiased", "ece_rms_width15_debiased", "ece_mass15_debiased", "ece_rms_mass15_debiased"]


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "coverage.py"))


def drawn(script: dict[str, Any], scenario: str, images: int, shape: tuple[int, int]) -> Grid:
    """Simulated scores, with an NLL and a Brier score that belong to them."""
    (grid,) = script["World"].of(*shape).draw(script["SCENARIOS"][scenario], images, np.random.default_rng(0))
    return {name: [_scored(cell.confidence, cell.correct) for cell in cells] for name, cells in grid.items()}


def _scored(confidence: np.ndarray, correct: np.ndarray) -> ImageScores:
    of_label = np.where(correct, confidence, 1 - confidence)
    return ImageScores(confidence, correct, -np.log(np.maximum(of_label, 1e-9)), 2 * (1 - of_label) ** 2)


@pytest.mark.parametrize("scenario", ["one run: calibrated", "one run: far off"])
def test_coverage(script: dict[str, Any], scenario: str) -> None:
    """results/simulations/coverage.txt has the figures of many more samples."""
    found = script["simulate"](script["World"].of(2, 3), script["SCENARIOS"][scenario], 400, 25, 0)
    assert (script["coverage"](found) >= 0.88).all()


def test_an_image_counts_once(script: dict[str, Any]) -> None:
    """Its cells share its difficulty and luck, so that they tell less than as many images."""
    grid = drawn(script, "one run: far off", 1000, (1, 5))
    found = intervals_over_cells(grid)
    rows = intervals_over_cells({name: [join_scores(cells)] for name, cells in grid.items()})
    for name in ("error", "nll", "brier", "ece_width15_debiased", "ece_mass15_debiased"):
        assert found[name].value == pytest.approx(rows[name].value, abs=0.005)
        assert length(found[name]) > 1.3 * length(rows[name])


def test_values_are_those_of_the_aggregate(script: dict[str, Any]) -> None:
    """A run far off is hardly biased by noise."""
    grid = drawn(script, "one run: far off", 2000, (3, 2))
    found, figures = intervals_over_cells(grid), vars(aggregate(grid)["by-corruption"])
    for name in ("error", "nll", "brier"):
        assert found[name].value == pytest.approx(figures[name], abs=1e-12)
    for name in CALIBRATION:
        assert found[name].low < figures[name.removesuffix("_debiased")] < found[name].high
    for name in ("ece_width15", "ece_mass15"):
        assert found[f"{name}_debiased"].value == pytest.approx(figures[name], abs=0.004)


def test_a_mean_has_students_interval(script: dict[str, Any]) -> None:
    grid = drawn(script, "one run: far off", 50, (2, 2))
    nll_N = np.mean([cell.nll for cells in grid.values() for cell in cells], axis=0)
    low, high = stats.t.interval(0.95, 49, nll_N.mean(), stats.sem(nll_N))
    found = intervals_over_cells(grid)["nll"]
    assert [found.low, found.high] == pytest.approx([low, high], abs=1e-12)


@pytest.mark.parametrize("scenario", ["one run: calibrated", "one run: over-confident", "one run: far off"])
def test_one_cell_is_like_a_clean_set(script: dict[str, Any], scenario: str) -> None:
    """Another method gives the interval there: it takes the number of errors in a bin as binomial."""
    grid = drawn(script, scenario, 3000, (1, 1))
    ((cell,),) = grid.values()
    found = intervals_over_cells(grid)
    for name, method in (("ece_width15_debiased", ece_debiased), ("ece_rms_width15_debiased", ece_rms_debiased)):
        expected = method(cell.confidence, cell.correct)
        ends = [found[name].value, found[name].low, found[name].high]
        assert ends == pytest.approx([expected.value, expected.low, expected.high], abs=0.006)


def test_few_images_without_an_error_prove_little() -> None:
    right = _scored(np.full(100, 1.0), np.ones(100, dtype=bool))
    found = intervals_over_cells({"fog": [right, right]})
    assert [(found[name].value, found[name].low) for name in ("error", *CALIBRATION)] == 5 * [(0.0, 0.0)]
    assert 0.01 < found["error"].high < 0.05
    assert all(found[name].high > 0.01 for name in CALIBRATION)


def test_one_image_is_refused() -> None:
    with pytest.raises(InputError, match="one image; an interval over images needs at least two"):
        intervals_over_cells({"fog": [_scored(np.array([0.9]), np.array([True]))]})


def test_cells_of_other_images_are_refused() -> None:
    few, many = (_scored(np.full(count, 0.9), np.ones(count, dtype=bool)) for count in (3, 4))
    with pytest.raises(InputError, match=r"the cells have \[3, 4\] images; each must hold the same ones"):
        intervals_over_cells({"fog": [few, many]})


def length(interval: Interval) -> float:
    return interval.high - interval.low
