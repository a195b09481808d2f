import numpy as np
import pytest

from counterpoint.report.drawing.axes import percent_ticks, ticks_around_zero, ticks_from_zero


@pytest.mark.parametrize(
    ("lowest", "ticks"),
    [
        (0.0, [0, 20, 40, 60, 80, 100]),
        (0.47, [40, 60, 80, 100]),
        (0.62, [60, 70, 80, 90, 100]),
        (0.87, [85, 90, 95, 100]),
        (0.999, [99, 100]),
        (1.0, [99, 100]),
    ],
)
def test_percent_ticks(lowest: float, ticks: list[int]) -> None:
    assert percent_ticks(lowest) == ticks


@pytest.mark.parametrize("lowest", np.linspace(0, 1, 201).tolist())
def test_percent_ticks_are_few_and_reach_below(lowest: float) -> None:
    ticks = percent_ticks(lowest)
    assert 2 <= len(ticks) <= 6
    assert 0 <= ticks[0] <= 100 * lowest + 1e-9
    assert ticks[-1] == 100


@pytest.mark.parametrize(
    ("lowest", "highest", "ticks"),
    [
        (0.0, 0.0, [0, 0.1]),
        (-0.34, 0.11, [-40, -30, -20, -10, 0, 10, 20]),
        (-1.0, 1.0, [-100, -50, 0, 50, 100]),
        (0.01, 0.03, [0, 1, 2, 3]),
        (-0.02, -0.01, [-2, -1.5, -1, -0.5, 0, 0.5]),
    ],
)
def test_ticks_around_zero(lowest: float, highest: float, ticks: list[float]) -> None:
    assert ticks_around_zero(lowest, highest) == pytest.approx(ticks)


@pytest.mark.parametrize("low", np.linspace(-1, 1, 21).tolist())
def test_ticks_around_zero_are_few_and_reach_both_ends(low: float) -> None:
    for high in np.linspace(low, 1, 21):
        ticks = ticks_around_zero(low, high)
        assert 2 <= len(ticks) <= 8
        assert ticks[0] <= 100 * low + 1e-9
        assert ticks[-1] >= 100 * high - 1e-9
        assert 0 in ticks


@pytest.mark.parametrize(
    ("highest", "ticks"),
    [
        (0.0, [0, 0.1]),
        (0.004, [0, 0.1, 0.2, 0.3, 0.4]),
        (0.03, [0, 1, 2, 3]),
        (0.11, [0, 5, 10, 15]),
        (0.67, [0, 20, 40, 60, 80]),
        (1.0, [0, 20, 40, 60, 80, 100]),
    ],
)
def test_ticks_from_zero(highest: float, ticks: list[float]) -> None:
    assert ticks_from_zero(highest) == pytest.approx(ticks)


@pytest.mark.parametrize("percent", range(0, 101, 3))
def test_ticks_from_zero_are_few_and_reach_above(percent: int) -> None:
    ticks = ticks_from_zero(percent / 100)
    assert 2 <= len(ticks) <= 6
    assert percent <= ticks[-1] <= 100
