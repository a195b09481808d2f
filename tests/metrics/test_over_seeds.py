"""Differences over seeds, against scipy's own t intervals."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from counterpoint.errors import InputError
from counterpoint.metrics import difference_over_seeds

DIGITS = Path(__file__).parents[2] / "results" / "diversity-cpu" / "digits.json"


@pytest.mark.parametrize("level", [0.95, 0.975])
@pytest.mark.parametrize("seeds", [2, 3, 10])
def test_pairs_have_the_interval_of_a_paired_t_test(seeds: int, level: float) -> None:
    rng = np.random.default_rng(seeds)
    ours, other = rng.normal(0.2, 0.03, seeds), rng.normal(0.3, 0.1, seeds)
    found = difference_over_seeds(ours, other, paired=True, level=level)
    expected = stats.ttest_rel(ours, other)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(level)))
    assert found.value == pytest.approx(ours.mean() - other.mean())
    assert found.degrees == seeds - 1
    assert found.deviation == pytest.approx((ours - other).std(ddof=1))


@pytest.mark.parametrize("level", [0.95, 0.975])
@pytest.mark.parametrize("seeds", [(2, 2), (2, 7), (10, 3)])
def test_two_groups_have_welchs_interval(seeds: tuple[int, int], level: float) -> None:
    rng = np.random.default_rng(sum(seeds))
    ours, other = rng.normal(0.2, 0.03, seeds[0]), rng.normal(0.3, 0.1, seeds[1])
    found = difference_over_seeds(ours, other, paired=False, level=level)
    expected = stats.ttest_ind(ours, other, equal_var=False)
    assert (found.low, found.high) == pytest.approx(tuple(expected.confidence_interval(level)))
    assert found.degrees == pytest.approx(expected.df)
    assert found.deviation**2 == pytest.approx(ours.var(ddof=1) + other.var(ddof=1))


def test_the_digits_have_the_interval_of_scipy() -> None:
    """Twenty pairs of seeds that were really trained, one of them an outlier."""
    runs = json.loads(DIGITS.read_text())
    diverse, other = ([run["corrupted_ece"] for run in runs[kind].values()] for kind in ("augmix-diverse", "augmix-3"))
    found = difference_over_seeds(diverse, other, paired=True, level=0.975)
    assert found.low is not None
    assert (found.low, found.high) == pytest.approx(tuple(stats.ttest_rel(diverse, other).confidence_interval(0.975)))
    assert [round(100 * end, 2) for end in (found.value, found.low, found.high or 0)] == [-0.61, -1.83, 0.61]


@pytest.mark.parametrize(
    ("ours", "other", "paired"),
    [
        ([0.3, 0.4, 0.6], [0.1, 0.2, 0.4], True),  # 0.3 - 0.1 and 0.6 - 0.4 differ in the last bits
        ([0.3, 0.3], [0.1, 0.1, 0.1], False),
        ([0.2, 0.7], [0.2, 0.7], True),
    ],
    ids=str,
)
def test_seeds_that_all_agree_give_no_interval(ours: list[float], other: list[float], paired: bool) -> None:
    found = difference_over_seeds(ours, other, paired=paired)
    assert (found.low, found.high, found.deviation) == (None, None, 0)
    assert found.value == pytest.approx(np.mean(ours) - np.mean(other))
    assert found.degrees == (len(ours) - 1 if paired else len(ours) + len(other) - 2)


def test_one_group_that_agrees_leaves_the_spread_of_the_other() -> None:
    ours, other = [0.3, 0.3, 0.3], [0.1, 0.2]
    found = difference_over_seeds(ours, other, paired=False)
    expected = stats.ttest_1samp(other, 0.3).confidence_interval()
    assert (found.low, found.high) == pytest.approx((0.3 - expected.high, 0.3 - expected.low))
    assert found.degrees == 1


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(InputError, match="there are 1 and 3 trainings; an interval over seeds needs at least two"):
        difference_over_seeds([0.1], [0.1, 0.2, 0.3], paired=False)
    with pytest.raises(InputError, match="there are 2 and 3 trainings; pairs need equally many"):
        difference_over_seeds([0.1, 0.4], [0.1, 0.2, 0.3], paired=True)
    with pytest.raises(InputError, match="other_S holds nan"):
        difference_over_seeds([0.1, 0.4], [0.1, float("nan")], paired=True)
    with pytest.raises(InputError, match=r"level is 95; it must lie between 0 and 1, such as 0\.95"):
        difference_over_seeds([0.1, 0.4], [0.1, 0.2], paired=True, level=95)
