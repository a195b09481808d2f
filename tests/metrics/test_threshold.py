"""Thresholds: the promise over 2,000 simulated sets of images, a slow obvious twin, and degenerate images."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import expit, ndtri
from scipy.stats import binom, binomtest

from counterpoint.errors import InputError
from counterpoint.metrics.groups import groups_of
from counterpoint.metrics.threshold import (
    GRID,
    likely_start,
    lowest_threshold,
    refuse_too_few,
    smallest_promise,
    verdict,
    verdict_over,
)
from counterpoint.records.threshold import Promise

Floats = NDArray[np.float64]
TARGET = 0.02
SETS = 2000
MOST_BROKEN = int(binom.ppf(0.999, SETS, 0.05))
"""A promise that is broken with exactly 5 % is broken more often than this in one of 1,000 tests."""


@dataclass(frozen=True)
class World:
    """Images as a function of a uniform number: how confident the network is of one, and how likely it is wrong.

    So the true error of what a threshold keeps can be integrated, and the promise judged by it.
    """

    confidence: Callable[[Floats], Floats]
    risk: Callable[[Floats], Floats]

    def draw(self, images: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        at = rng.random(images)
        return self.confidence(at), (rng.random(images) >= self.risk(at)).astype(np.float64)

    def truths(self) -> dict[float, tuple[float, float]]:
        """For each threshold the true coverage, and the true error of what is kept.

        It is rounded, so that an error at the target is not below it.
        """
        at = (np.arange(200_000) + 0.5) / 200_000
        confidence, risk = self.confidence(at), self.risk(at)
        kept = {threshold: confidence >= threshold for threshold in GRID.tolist()}
        return {
            threshold: (float(of.mean()), round(float(risk[of].mean()), 9) if of.any() else 0.0)
            for threshold, of in kept.items()
        }


def steps(*levels: tuple[float, float, float]) -> World:
    """Levels of a share of the images, a confidence and an error each."""
    shares, confidences, risks = (np.array(column) for column in zip(*levels, strict=True))
    ends = np.cumsum(shares)
    return World(lambda at: confidences[np.searchsorted(ends, at)], lambda at: risks[np.searchsorted(ends, at)])


def network(temperature: float, rounding: int = 15, mean: float = 5.0, spread: float = 3.0) -> World:
    """Normal log-odds to be right; a temperature below 1 makes it over-confident."""

    def odds(at: Floats) -> Floats:
        return mean + spread * ndtri(at)

    return World(
        lambda at: np.round(np.maximum(expit(odds(at) / temperature), 0.1), rounding),
        lambda at: 1 - np.maximum(expit(odds(at)), 0.1),
    )


WORLDS = {
    "calibrated": network(1.0),
    "over-confident": network(0.5),
    "under-confident": network(3.0),
    "tied confidences": network(1.0, rounding=1),
    "two confidences": steps((0.7, 0.9, 0.012), (0.3, 0.6, 0.1)),
    # Wherever it is cut, the error is the target: every choice breaks the promise.
    "at the target": World(lambda at: at, lambda at: np.full_like(at, TARGET)),
    # Below the target above 0.9, and exactly the target at each threshold from there on.
    "at the target from 0.9 down": steps(
        (0.5, 0.97, 0.2 * TARGET), (0.1, 0.9, 5 * TARGET), *((0.05, tenth / 10, TARGET) for tenth in range(8, 0, -1))
    ),
    # The surest images are the worst, so that the error of what is kept first falls and then rises.
    "surest are worst": steps((0.01, 0.999, 0.3), (0.79, 0.95, 0.005), (0.2, 0.5, 0.3)),
    "surest are worst, at the target": steps((0.05, 0.999, 0.29), (0.7, 0.95, 0.00072), (0.25, 0.5, TARGET)),
}


@cache
def truths(name: str) -> dict[float, tuple[float, float]]:
    return WORLDS[name].truths()


def promise_of(world: World, images: int, target: float, rng: np.random.Generator) -> Promise | None:
    """As a run does it: a quarter of the images suggests the start, the others decide."""
    confidence_N, correct_N = world.draw(images, rng)
    first, second = slice(images // 4), slice(images // 4, None)
    start = likely_start(confidence_N[first], correct_N[first], target, images - images // 4)
    try:
        return lowest_threshold(confidence_N[second], correct_N[second], target, start)
    except InputError:
        return None


@cache
def promises(name: str, images: int = 1000) -> list[Promise | None]:
    rng = np.random.default_rng(20)
    return [promise_of(WORLDS[name], images, TARGET, rng) for _ in range(SETS)]


def share_broken(name: str) -> float:
    return sum(truths(name)[made.chosen.threshold][1] >= TARGET for made in promises(name) if made) / SETS


@pytest.mark.parametrize("name", WORLDS)
def test_the_promise_breaks_in_at_most_5_percent_of_sets(name: str) -> None:
    assert share_broken(name) <= MOST_BROKEN / SETS


@pytest.mark.parametrize("name", ["at the target", "at the target from 0.9 down"])
def test_where_it_is_hardest_the_risk_is_nearly_used_up(name: str) -> None:
    """So the simulation has teeth, and the method gives nothing away."""
    assert share_broken(name) > 0.025


def test_without_the_sequence_the_promise_would_break() -> None:
    """The lowest of all thresholds whose own bound is below the target: what must not be done."""
    rng, broken = np.random.default_rng(20), 0
    for _ in range(SETS):
        confidence_N, correct_N = WORLDS["at the target"].draw(750, rng)
        kept_GN = confidence_N >= GRID[:, None]
        kept_G, wrong_G = kept_GN.sum(axis=1), (kept_GN & (correct_N == 0)).sum(axis=1)
        broken += bool((binom.cdf(wrong_G, kept_G, TARGET) < 0.05).any())
    assert broken > 1.5 * MOST_BROKEN


@pytest.mark.parametrize("name", ["calibrated", "tied confidences", "surest are worst"])
def test_the_coverage_is_within_its_interval(name: str) -> None:
    made = [one for one in promises(name) if one]
    coverage = [truths(name)[one.chosen.threshold][0] for one in made]
    missed = sum(not one.coverage_low <= true <= one.coverage_high for one, true in zip(made, coverage, strict=True))
    assert len(made) > 100
    assert missed <= 0.05 * len(made)


@pytest.mark.parametrize("name", ["calibrated", "over-confident", "under-confident"])
def test_a_threshold_is_found_where_there_is_one(name: str) -> None:
    """5,000 images find nearly all of what could be kept if the error were known."""
    rng = np.random.default_rng(3)
    made = [one for _ in range(100) if (one := promise_of(WORLDS[name], 5000, 0.01, rng))]
    possible = max(coverage for coverage, error in truths(name).values() if error < 0.01)
    assert len(made) >= 98
    assert np.mean([truths(name)[one.chosen.threshold][0] for one in made]) > 0.88 * possible


def slow_counts(confidence: list[float], correct: list[bool], threshold: float) -> tuple[int, int]:
    kept = [right for sure, right in zip(confidence, correct, strict=True) if sure >= threshold]
    return len(kept), kept.count(False)


@cache
def slow_passes(wrong: int, kept: int, target: float) -> bool:
    return kept > 0 and bool(binomtest(wrong, kept, target, alternative="less").pvalue < 0.05)


def slow_chances(confidence: list[float], correct: list[bool], target: float, images: int) -> dict[float, float]:
    chances = {}
    for threshold in GRID.tolist():
        kept, wrong = slow_counts(confidence, correct, threshold)
        there = round(kept * images / len(correct))
        passing = [other for other in range(there + 1) if slow_passes(other, there, target)]
        chances[threshold] = float(binom.cdf(max(passing), there, (wrong + 0.5) / (kept + 1))) if passing else 0.0
    return chances


def slow_threshold(confidence: list[float], correct: list[bool], target: float, start: float) -> float | None:
    chosen = None
    for threshold in sorted((one for one in GRID.tolist() if one <= start), reverse=True):
        kept, wrong = slow_counts(confidence, correct, threshold)
        if not slow_passes(wrong, kept, target):
            break
        chosen = threshold
    return chosen


sure = st.sampled_from([0.1, 0.25, 0.5, 0.505, 0.9, 0.99, 0.9985, 0.9999, 1.0])
images = st.lists(st.tuples(sure, st.sampled_from([True] * 9 + [False])), min_size=1, max_size=60)


@given(images, st.sampled_from([0.05, 0.1, 0.3, 0.6]), st.sampled_from(GRID.tolist()))
@settings(deadline=None, max_examples=150)
def test_it_is_what_testing_one_threshold_after_another_gives(
    pairs: list[tuple[float, bool]], target: float, start: float
) -> None:
    confidence, correct = [c for c, _ in pairs], [right for _, right in pairs]
    expected = slow_threshold(confidence, correct, target, start)
    if expected is None:
        with pytest.raises(InputError, match=r"cannot be promised|no threshold can be promised"):
            lowest_threshold(confidence, correct, target, start)
        return
    made = lowest_threshold(confidence, correct, target, start)
    assert (made.chosen.threshold, made.start.threshold) == (expected, start)
    assert (made.chosen.kept, made.chosen.wrong) == slow_counts(confidence, correct, expected)
    bound = binomtest(made.chosen.wrong, made.chosen.kept, alternative="less").proportion_ci(0.95).high
    assert made.chosen.upper == pytest.approx(bound, abs=1e-12)
    assert made.refused is None if expected == 0 else made.refused is not None and made.refused.upper >= target
    interval = binomtest(made.chosen.kept, len(pairs)).proportion_ci(1 - 0.05 / len(GRID))
    assert (made.coverage_low, made.coverage_high) == pytest.approx((interval.low, interval.high), abs=1e-12)


@given(images, st.sampled_from([0.05, 0.1, 0.3]), st.sampled_from([1, 30, 90]))
@settings(deadline=None, max_examples=30)
def test_the_start_is_where_other_images_are_likeliest_to_pass(
    pairs: list[tuple[float, bool]], target: float, others: int
) -> None:
    confidence, correct = [c for c, _ in pairs], [right for _, right in pairs]
    chances = slow_chances(confidence, correct, target, others)
    assert chances[likely_start(confidence, correct, target, others)] == pytest.approx(max(chances.values()), abs=1e-9)


def test_the_grid_is_fixed_falls_and_ends_by_keeping_everything() -> None:
    assert (len(GRID), GRID[0], GRID[-1]) == (163, 0.999999999, 0.0)
    assert (np.diff(GRID) < 0).all()
    for threshold in (0.5, 0.87, 0.99, 0.991, 0.9993, 0.999999):
        assert threshold in GRID, "as a person would write it"


def test_all_right() -> None:
    made = lowest_threshold([0.8] * 300, [1] * 300, 0.01, start=0.7)
    assert (made.chosen.threshold, made.chosen.kept, made.chosen.wrong, made.refused) == (0.0, 300, 0, None)
    assert made.chosen.upper == pytest.approx(1 - 0.05 ** (1 / 300)) == smallest_promise(300)
    assert (made.coverage, made.coverage_high) == (1.0, 1.0)
    assert made.start.threshold == 0.7
    assert 0.95 < made.coverage_low < 1


def test_what_is_as_confident_as_the_threshold_is_kept() -> None:
    confidence, correct = [0.9] * 300 + [0.8] * 300, [1] * 300 + [0] * 300
    made = lowest_threshold(confidence, correct, 0.01, start=0.9)
    assert (made.chosen.threshold, made.chosen.kept, made.coverage) == (0.81, 300, 0.5)
    assert made.refused is not None
    assert (made.refused.threshold, made.refused.kept, made.refused.wrong) == (0.8, 600, 300)


@pytest.mark.parametrize(
    ("confidence", "correct", "message"),
    [
        ([0.9] * 298, [1] * 298, "an error below 1 % cannot be promised with 298 images: .* below 1.01 %"),
        ([1.0], [1], "an error below 1 % cannot be promised with 1 images: .* below 95.5 %"),
        (
            [0.9] * 400,
            [0] * 400,
            "no threshold can be promised .* at 0.5, .* 400 of 400 .* 100 %; .* 400 .* below 0.75 %",
        ),
        ([0.9] * 400, [0, 0, *[1] * 398], "2 of 400 kept images are wrong, so their error may be 1.57 %"),
        ([0.3] * 400, [1] * 400, "0 of 0 kept images are wrong, so their error may be 100 %"),
    ],
    ids=["too few", "one image", "all wrong", "two wrong", "nothing kept"],
)
def test_what_cannot_be_promised_is_refused(confidence: list[float], correct: list[int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        lowest_threshold(confidence, correct, 0.01, start=0.5)


@pytest.mark.parametrize("count", [1, 10, 250, 298, 299, 5000])
def test_the_smallest_promise_is_within_reach_as_shown(count: int) -> None:
    with pytest.raises(InputError) as refused:
        lowest_threshold([0.9] * count, [1] * count, 1e-5, start=0.5)
    shown = float(str(refused.value).split("only an error below ")[1].split(" %")[0]) / 100
    assert smallest_promise(count) < shown < 1.02 * smallest_promise(count)
    assert lowest_threshold([0.9] * count, [1] * count, shown, start=0.5).chosen.threshold == 0


@pytest.mark.parametrize("target", [0, 1, -0.1, 2, float("nan")])
def test_a_target_that_is_no_error_is_refused(target: float) -> None:
    for function in (lambda: lowest_threshold([0.9], [1], target, 0.5), lambda: likely_start([0.9], [1], target, 3)):
        with pytest.raises(InputError, match="an error must be above 0 and below 1"):
            function()


def test_a_start_that_is_not_on_the_grid_is_refused() -> None:
    with pytest.raises(InputError, match=r"the start is 0\.5551, which is not a threshold of the grid"):
        lowest_threshold([0.9] * 400, [1] * 400, 0.01, start=0.5551)


@pytest.mark.parametrize(
    ("kept", "wrong", "expected"),
    [
        (0, 0, "holds"),
        (100, 1, "holds"),
        (100, 2, "unclear"),
        (100, 3, "unclear"),
        (100, 4, "breaks"),
        (5, 5, "breaks"),
    ],
)
def test_verdicts(kept: int, wrong: int, expected: str) -> None:
    """With 1 % and 100 images, 4 or more wrong ones have a chance of 1.8 %, 3 or more of 7.9 %."""
    assert verdict(kept, wrong, 0.01) == expected
    if kept:
        above = binomtest(wrong, kept, 0.01, alternative="greater").pvalue < 0.05
        assert above == (expected == "breaks")


@pytest.mark.parametrize(
    ("apart", "words"), [(1, "the other validation image chooses"), (25, "the other 25 validation images choose")]
)
def test_too_few_images_name_those_that_do_not_count(apart: int, words: str) -> None:
    with pytest.raises(InputError, match=rf"with 6 images \({words} which threshold is tried first\)"):
        refuse_too_few(6, 0.3, apart)


def grouped_images(groups: int, rng: np.random.Generator, error: float) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Groups of one to thirty images of the same confidence. All images of a group are right or wrong together, and
    large groups are as often wrong as small ones."""
    group_N = np.repeat(np.arange(groups, dtype=np.int64), rng.integers(1, 31, groups))
    wrong_G = rng.random(groups) < error
    return np.full(len(group_N), 0.9), np.where(wrong_G, 0.0, 1.0)[group_N], group_N


def test_the_promise_holds_over_groups() -> None:
    """At an error that is the target itself. As independent images it would be broken most of the time."""
    rng = np.random.default_rng(0)
    broken = {"groups": 0, "images": 0}
    for _ in range(SETS):
        confidence, correct, group_N = grouped_images(200, rng, TARGET)
        for counted, groups in (("groups", group_N), ("images", None)):
            try:
                lowest_threshold(confidence, correct, TARGET, 0.9, groups)
                broken[counted] += 1
            except InputError:
                pass
    assert broken["groups"] <= MOST_BROKEN
    assert broken["images"] > 0.2 * SETS


def test_one_image_is_drawn_from_each_group() -> None:
    """Whatever its score is: which image that is depends on the groups alone."""
    rng = np.random.default_rng(0)
    confidence, _, group_N = grouped_images(150, rng, 0.0)
    group_N = rng.permutation(group_N)
    kept = rng.random(len(group_N)) < 0.5
    found = lowest_threshold(np.where(kept, 0.9, 0.1), np.ones(len(kept)), 0.05, 0.9, group_N)
    assert (found.images, found.drawn_from) == (150, len(kept))
    assert found.chosen.kept == 150, "nothing is wrong, so that everything is kept"
    with pytest.raises(
        InputError, match=r"cannot be promised with 150 groups \(one image of each counts\): even if none"
    ):
        lowest_threshold(confidence, np.ones(len(kept)), 0.01, 0.9, group_N)
    alone = np.arange(len(kept))
    assert lowest_threshold(confidence, kept, 0.6, 0.9, alone) == lowest_threshold(confidence, kept, 0.6, 0.9)


def test_a_verdict_over_groups_takes_a_group_as_one_draw() -> None:
    groups = groups_of(np.repeat(np.arange(40), 20), 800)
    assert groups is not None
    kept, one_group = np.ones(800), np.arange(800) < 20
    assert verdict(800, 20, 0.01) == "breaks"
    assert verdict_over(groups, kept, one_group, 0.01) == "unclear", "all wrong images are of one group"
    assert verdict_over(groups, kept, one_group, 0.025) == "holds", "exactly the target"
    in_each = np.arange(800) % 20 < 1
    assert verdict_over(groups, kept, in_each, 0.01) == "breaks"
    apart = np.random.default_rng(0).random(800) < 0.1
    assert verdict_over(groups, kept, apart, 0.01) == "breaks"
    few = groups_of(np.repeat(np.arange(8), 100), 800)
    assert few is not None
    assert verdict_over(few, kept, apart, 0.01) == "unclear", "so few groups show nothing"


def test_a_verdict_of_breaks_over_groups_is_seldom_wrong() -> None:
    rng, wrong = np.random.default_rng(1), 0
    for _ in range(1000):
        _, correct, group_N = grouped_images(60, rng, 0.1)
        groups = groups_of(group_N, len(group_N))
        assert groups is not None
        wrong += verdict_over(groups, np.ones(len(correct)), 1 - correct, 0.1) == "breaks"
    assert wrong <= binom.ppf(0.999, 1000, 0.05)
