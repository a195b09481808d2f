import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterpoint.metrics import noise_floor, reliability_bins
from counterpoint.metrics.calibration import Binning
from counterpoint.metrics.intervals import Scatter
from counterpoint.metrics.sampling import BinSums, bin_sums, ece_scatter, squared_scatter


def chances_after(confidence: list[float], gap: float) -> list[float]:
    """Each image's chance to be right in a bin whose accuracy is its mean confidence + gap."""
    mean = sum(confidence) / len(confidence)
    if gap < 0:
        return [c * (1 + gap / mean) for c in confidence]
    return [1 - (1 - c) * (1 - gap / (1 - mean)) for c in confidence]


def exact_moments(confidence: list[float], gap: float, power: int) -> tuple[float, float]:
    """Mean and variance of |gap shown|^power of one bin, from the exact distribution of the number of right images."""
    distribution = np.ones(1)
    for chance in chances_after(confidence, gap):
        distribution = np.convolve(distribution, [1 - chance, chance])
    shown = np.abs(np.arange(len(distribution)) / len(confidence) - np.mean(confidence)) ** power
    mean = float(distribution @ shown)
    return mean, float(distribution @ shown**2) - mean**2


def one_bin(confidence: list[float]) -> BinSums:
    return bin_sums(confidence, [1] * len(confidence), 1, "width")


@pytest.mark.parametrize(("scatter", "power"), [(ece_scatter, 1), (squared_scatter, 2)])
@pytest.mark.parametrize("images", [1, 2, 7, 60])
@pytest.mark.parametrize("confidence", [0.3, 0.9, 0.999])
@pytest.mark.parametrize("gap", [-0.25, -0.01, 0.0, 0.0005])
def test_equal_confidences_are_exact(
    scatter: Callable[[BinSums, np.ndarray], Scatter], power: int, images: int, confidence: float, gap: float
) -> None:
    found = scatter(one_bin([confidence] * images), np.array([gap]))
    mean, variance = exact_moments([confidence] * images, gap, power)
    assert found.truth == pytest.approx(abs(gap) ** power, abs=1e-12)
    assert found.mean == pytest.approx(mean, rel=1e-9)
    assert found.variance == pytest.approx(variance, rel=1e-6, abs=1e-12)


@pytest.mark.parametrize(("scatter", "power"), [(ece_scatter, 1), (squared_scatter, 2)])
@pytest.mark.parametrize("gap", [-0.2, -0.02, 0.0, 0.05])
def test_unequal_confidences_are_close(
    scatter: Callable[[BinSums, np.ndarray], Scatter], power: int, gap: float
) -> None:
    confidence = np.linspace(0.4, 0.999, 40).tolist()
    found = scatter(one_bin(confidence), np.array([gap]))
    mean, variance = exact_moments(confidence, gap, power)
    assert found.mean == pytest.approx(mean, rel=0.01)
    assert found.variance == pytest.approx(variance, rel=0.05)


def test_the_expected_square_is_exact_for_unequal_confidences() -> None:
    confidence = [0.1, 0.5, 0.6, 0.95, 1.0]
    mean, _ = exact_moments(confidence, -0.1, power=2)
    assert squared_scatter(one_bin(confidence), np.array([-0.1])).mean == pytest.approx(mean, rel=1e-12)


@pytest.mark.parametrize("binning", ["width", "mass"])
@pytest.mark.parametrize("kind", ["sure", "spread"])
def test_without_gaps_it_is_the_noise_floor(population: Any, kind: str, binning: Binning) -> None:
    confidence, correct = population(kind).draw(1000, np.random.default_rng(0))
    sums = bin_sums(confidence, correct, 15, binning)
    found = ece_scatter(sums, np.zeros(len(sums.count)))
    floor = noise_floor(confidence, correct, 15, binning, simulations=4000)
    assert found.truth == 0
    assert found.mean == pytest.approx(floor.ece_mean, rel=0.01)
    assert math.sqrt(found.variance) == pytest.approx(floor.ece_sd, rel=0.05)


def test_scatter_of_a_miscalibrated_population(population: Any) -> None:
    """Many samples, the images drawn anew each time: the plug-in values have the mean and variance foretold."""
    model, rng = population("spread", temperature=2.0, shift=0.05), np.random.default_rng(0)
    shown = []
    for _ in range(1500):
        confidence, correct = model.draw(800, rng)
        sums = bin_sums(confidence, correct, 15, "width")
        shown.append([np.abs(sums.surplus).sum() / 800, (sums.surplus**2 / sums.count).sum() / 800])
    typical, chance_N = model.confidence_P[12::25], model.chance_P[12::25]
    sums = bin_sums(typical, np.ones(800), 15, "width")
    gap = np.add.reduceat(chance_N - typical, np.cumsum(sums.count) - sums.count) / sums.count
    for column, scatter in enumerate((ece_scatter, squared_scatter)):
        found = scatter(sums, gap)
        assert found.mean == pytest.approx(np.mean(shown, axis=0)[column], rel=0.02)
        assert found.variance == pytest.approx(np.var(shown, axis=0)[column], rel=0.1)


def test_sums_by_hand_and_in_any_order() -> None:
    confidence, correct = [0.95, 0.55, 0.95, 0.85], [1, 0, 0, 1]
    sums = bin_sums(confidence, correct, 10, "width")
    assert sums.count.tolist() == [1, 1, 2]
    assert sums.images == 4
    assert sums.doubt == pytest.approx([0.45, 0.15, 0.1])
    assert sums.doubt_squared == pytest.approx([0.45**2, 0.15**2, 2 * 0.05**2])
    assert sums.surplus == pytest.approx([-0.55, 0.15, 0.05 - 0.95])
    assert sums.surplus_squared == pytest.approx([0.55**2, 0.15**2, 0.05**2 + 0.95**2])
    table = reliability_bins(confidence, correct, 10)
    assert sums.gap == pytest.approx(table.accuracy - table.confidence)

    rng = np.random.default_rng(0)
    confidence_N, correct_N = rng.integers(0, 20, 300) / 20, rng.random(300) < 0.5
    order = rng.permutation(300)
    sums = bin_sums(confidence_N, correct_N, 7, "mass")
    reordered = bin_sums(confidence_N[order], correct_N[order], 7, "mass")
    assert all((vars(sums)[name] == vars(reordered)[name]).all() for name in vars(sums))
