import numpy as np
from scipy import stats

from counterpoint.corrupt.draws import Draws

DRAWS = Draws(seed=0, corruption="snow", severity=2, start=0, count=50)


def test_uniform_and_normal_have_their_distributions() -> None:
    assert stats.kstest(DRAWS.uniform("a", 20, 20).ravel(), "uniform").pvalue > 0.01
    assert stats.kstest(DRAWS.uniform("b", 400, low=-3, high=1).ravel(), "uniform", (-3, 4)).pvalue > 0.01
    assert stats.kstest(DRAWS.normal("c", 400, mean=2, sd=0.5).ravel(), "norm", (2, 0.5)).pvalue > 0.01


def test_integers_fill_their_range_evenly() -> None:
    counts = np.bincount(DRAWS.integers("a", 400, low=-2, high=2).ravel() + 2)
    assert len(counts) == 4
    assert stats.chisquare(counts).pvalue > 0.01


def test_images_have_their_own_numbers_wherever_the_batch_starts() -> None:
    later = Draws(seed=0, corruption="snow", severity=2, start=30, count=20)
    for size in (1, 7, 8, 9):
        assert np.array_equal(DRAWS.uniform("a", size)[30:], later.uniform("a", size))
    assert len(np.unique(DRAWS.uniform("a", 9))) == 50 * 9


def test_every_part_of_the_key_matters() -> None:
    keyed_otherwise = [
        Draws(1, "snow", 2, 0, 50),
        Draws(0, "fog", 2, 0, 50),
        Draws(0, "snow", 3, 0, 50),
    ]
    first = DRAWS.uniform("a", 8)
    for different in [*(draws.uniform("a", 8) for draws in keyed_otherwise), DRAWS.uniform("b", 8)]:
        assert abs(np.corrcoef(first.ravel(), different.ravel())[0, 1]) < 0.2


def test_the_numbers_stay_the_same_between_versions_and_machines() -> None:
    """Sets made with one release can be continued and checked with another."""
    draws = Draws(seed=7, corruption="fog", severity=3, start=10_000, count=1)
    assert draws.uniform("golden", 2)[0].tolist() == [0.7952461125096306, 0.9356865150621161]
