"""Images that belong together: an interval counts a group as one draw."""

import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from counterpoint.errors import InputError
from counterpoint.metrics import (
    ImageScores,
    Interval,
    calibration_differences,
    ece_debiased,
    ece_rms_debiased,
    error_difference,
    image_scores,
    intervals_over_cells,
    mean_difference,
    noise_floor,
    ood_auroc_difference,
    ood_auroc_interval,
    paired_differences,
    score_set,
    summarise,
)
from counterpoint.metrics.groups import FEWEST, Groups, groups_of, moved_by, numbered
from counterpoint.metrics.intervals import interval_of_mean
from counterpoint.metrics.scores import Grid, join_scores
from counterpoint.metrics.shift import aggregate_with_floors

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    """The benchmark with what it imports from beside it, whatever else is called coverage."""
    before = {name: sys.modules.pop(name, None) for name in ("coverage", "noise_floor")}
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield runpy.run_path(str(BENCHMARKS / "groups_coverage.py"))
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


def made_scores(images: int, seed: int, shift: float = 0.0) -> ImageScores:
    rng = np.random.default_rng(seed)
    odds = rng.normal(1.5, 1.5, images)
    return _scored(expit(odds), rng.random(images) < expit(odds - shift))


def _scored(confidence: np.ndarray, correct: np.ndarray) -> ImageScores:
    of_label = np.where(correct, confidence, 1 - confidence)
    return ImageScores(confidence, correct, -np.log(np.maximum(of_label, 1e-9)), 2 * (1 - of_label) ** 2)


def copied(scores: ImageScores, times: int) -> ImageScores:
    """Each image several times, and its copies as a group."""
    images = np.tile(np.arange(len(scores)), times)
    return replace(scores.select(images), group_N=images)


def test_groups_are_numbered_by_their_first_images() -> None:
    assert numbered(np.array([7, 7, 3, 9, 3])).tolist() == [0, 0, 1, 2, 1]
    found = groups_of([7, 7, 3, 9, 3], 5)
    assert found is not None
    assert (len(found), found.sizes_G.tolist(), found.images) == (3, [2, 2, 1], 5)
    assert found.sums(np.array([1.0, 2, 3, 4, 5])).tolist() == [3, 8, 4]
    assert groups_of([4, 2, 9], 3) is None, "each image is alone"
    assert groups_of(None, 3) is None


@pytest.mark.parametrize(
    ("groups", "message"),
    [([0, 1], r"groups has shape \(2,\); there are 3"), ([0.5, 1, 1], "group numbers must be integers")],
)
def test_what_is_no_group_is_refused(groups: list[float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        groups_of(groups, 3)


def test_the_variance_is_that_of_leaving_out_one_group_after_the_other() -> None:
    rng = np.random.default_rng(0)
    group_N, values_N = rng.integers(0, 25, 200), rng.normal(size=200) + rng.integers(0, 2, 200)
    found = interval_of_mean(values_N, Groups(numbered(group_N)))
    without = np.array([values_N[group_N != group].mean() for group in range(25)])
    variance = 24 / 25 * ((without - values_N.mean()) ** 2).sum()
    margin = stats.t.ppf(0.975, 24) * np.sqrt(variance)
    assert found.value == pytest.approx(values_N.mean())
    assert (found.low, found.high) == pytest.approx((found.value - margin, found.value + margin))


def test_groups_of_one_image_each_are_images() -> None:
    """The formulas, which `groups_of` does not even use then."""
    rng = np.random.default_rng(0)
    values_ND = rng.normal(size=(60, 3))
    expected = (values_ND - values_ND.mean(axis=0)) / np.sqrt(60 * 59)
    assert np.allclose(moved_by(values_ND, np.ones(60)), expected)
    alone = Groups(np.arange(60))
    one, other = interval_of_mean(values_ND[:, 0], alone), interval_of_mean(values_ND[:, 0])
    assert vars(one) == pytest.approx(vars(other))
    assert alone.images_per_draw(values_ND[:, 0], values_ND[:, 0] > 0) == pytest.approx(1)


def test_groups_of_one_image_each_change_no_figure() -> None:
    ours, other = made_scores(80, 0), made_scores(80, 1)
    alone = np.random.default_rng(0).permutation(80)
    grouped, other_grouped = replace(ours, group_N=alone), replace(other, group_N=alone)
    assert paired_differences(grouped, other_grouped) == paired_differences(ours, other)
    grid, grouped_grid = {"fog": [ours, other]}, {"fog": [grouped, other_grouped]}
    assert intervals_over_cells(grouped_grid) == intervals_over_cells(grid)
    assert aggregate_with_floors(grouped_grid) == aggregate_with_floors(grid)
    for figure in (ece_debiased, ece_rms_debiased, noise_floor):
        assert figure(ours.confidence, ours.correct, groups=alone) == figure(ours.confidence, ours.correct)


def test_copies_of_an_image_prove_nothing_new() -> None:
    """Each image three times: the intervals are those of the images. Those of calibration errors are a little longer,
    because Student's quantile takes the place of the normal one."""
    ours, other = made_scores(300, 0, 0.5), made_scores(300, 1)
    found = intervals_over_cells({"fog": [copied(ours, 3)]})
    expected = intervals_over_cells({"fog": [ours]})
    for name in ("error", "nll", "brier"):
        assert vars(found[name]) == pytest.approx(vars(expected[name]), rel=1e-9), name
    for name in found.keys() - {"error", "nll", "brier"}:
        assert found[name].value == pytest.approx(expected[name].value, abs=1e-6), name
        assert length(found[name]) == pytest.approx(length(expected[name]), rel=0.02), name
    twice, once = paired_differences(copied(ours, 3), copied(other, 3)), paired_differences(ours, other)
    for name in once:
        assert twice[name].value == pytest.approx(once[name].value, abs=1e-6), name
        assert length(twice[name]) == pytest.approx(length(once[name]), rel=0.02), name
    independent = paired_differences(ours.select(np.tile(range(300), 3)), other.select(np.tile(range(300), 3)))
    assert length(independent["error"]) < 0.65 * length(once["error"])


def length(interval: Interval) -> float:
    return interval.high - interval.low


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_the_noise_floor_of_copies_is_that_of_the_images(binning: Any) -> None:
    """But for the weight of what all bins show: it is as if each bin had two more groups."""
    scores = made_scores(300, 0)
    group_N = np.tile(np.arange(300), 4)
    copies = scores.select(group_N)
    once = noise_floor(scores.confidence, scores.correct, 15, binning, 2000)
    found = noise_floor(copies.confidence, copies.correct, 15, binning, 2000, groups=group_N)
    assert found.ece_mean == pytest.approx(once.ece_mean, rel=0.03)
    assert found.ece_rms_mean == pytest.approx(once.ece_rms_mean, rel=0.03)
    alone = noise_floor(copies.confidence, copies.correct, 15, binning, 2000)
    assert alone.ece_mean < 0.6 * once.ece_mean


def test_a_bin_of_one_group_takes_what_the_others_show() -> None:
    """The group's sum is the bin's own gap, so that by itself it would show no noise at all."""
    rng = np.random.default_rng(0)
    group_N = np.repeat(np.arange(40), 10)
    confidence = np.where(group_N == 0, 0.2, 0.8)
    correct = np.repeat(rng.random(40) < 0.7, 10)
    correct[:10] = rng.random(10) < 0.5
    found = noise_floor(confidence, correct, simulations=2000, groups=group_N)
    alone = noise_floor(confidence, correct, simulations=2000)
    # Within each bin all ten images of a group are right together: a gap scatters √10 times as far.
    assert found.ece_rms_mean == pytest.approx(np.sqrt(10) * alone.ece_rms_mean, rel=0.1)


def test_the_size_of_an_independent_draw() -> None:
    groups = Groups(np.repeat(np.arange(50), 8))
    together = np.repeat(np.random.default_rng(0).random(50) < 0.3, 8).astype(float)
    assert groups.images_per_draw_of_errors(together) == pytest.approx(8)
    apart = (np.random.default_rng(1).random(400) < 0.3).astype(float)
    assert 1 <= groups.images_per_draw_of_errors(apart) < 2
    assert groups.images_per_draw_of_errors(1 - apart) == pytest.approx(groups.images_per_draw_of_errors(apart))
    assert groups.images_per_draw_of_errors(np.zeros(400)) == 8, "nothing shows that they are independent"
    assert groups.images_per_draw_of_errors(np.eye(1, 400)[0]) > 4


def test_groups_without_an_error_prove_little() -> None:
    """30 patients with 20 pictures each prove as much as 30 pictures, not as 600."""
    right = replace(_scored(np.full(600, 0.999), np.ones(600, bool)), group_N=np.repeat(np.arange(30), 20))
    few = _scored(np.full(30, 0.999), np.ones(30, bool))
    found, expected = (intervals_over_cells({"clean": [scores]}) for scores in (right, few))
    assert found["error"].high == pytest.approx(expected["error"].high)
    assert found["ece_width15_debiased"].high == pytest.approx(expected["ece_width15_debiased"].high, rel=0.1)
    difference = error_difference(right.correct, right.correct, right.group_N)
    alone = error_difference(few.correct, few.correct)
    assert alone.high <= difference.high < 1.1 * alone.high


@pytest.mark.parametrize("of_figure", [mean_difference, error_difference, ece_debiased, ece_rms_debiased, noise_floor])
def test_few_groups_are_refused(of_figure: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    one, other = rng.random(90) < 0.7, rng.random(90) < 0.5
    with pytest.raises(InputError, match="the images are of 9 groups, and an interval over groups needs at least 10"):
        of_figure(one, other, groups=np.arange(90) % 9)
    with pytest.raises(InputError, match="one group has 46 of the 90 images"):
        of_figure(one, other, groups=np.maximum(np.arange(90) - 45, 0))
    of_figure(one, other, groups=np.arange(90) % FEWEST)


def test_of_few_groups_there_are_figures_without_intervals() -> None:
    probs = np.random.default_rng(0).dirichlet([1, 1], (2, 30))
    labels, group_N = np.arange(30) % 2, np.arange(30) % 3
    scores = score_set(probs, labels, group_N)
    found, alone = summarise(scores), summarise(score_set(probs, labels))
    assert found.honest is None
    assert (found.ensemble, found.members) == (alone.ensemble, alone.members)
    grid: Grid = {"fog": [scores.ensemble, scores.members[0]]}
    assert aggregate_with_floors(grid)["pooled"].ece_width15_floor is None
    for figure in (intervals_over_cells, lambda grid: calibration_differences(grid, grid)):
        with pytest.raises(InputError, match="the images are of 3 groups"):
            figure(grid)


def test_two_runs_need_the_same_groups() -> None:
    ours, other = made_scores(60, 0), made_scores(60, 1)
    grouped = replace(ours, group_N=np.arange(60) % 20)
    renamed = replace(other, group_N=100 - np.arange(60) % 20)
    assert set(paired_differences(grouped, renamed)) == set(paired_differences(ours, other)), "numbers may differ"
    for wrong in (other, replace(other, group_N=np.arange(60) % 15)):
        for figure in (paired_differences, lambda a, b: calibration_differences({"fog": [a]}, {"fog": [b]})):
            with pytest.raises(InputError, match="different groups"):
                figure(grouped, wrong)


def test_scores_keep_their_groups() -> None:
    scores = image_scores([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8]], [0, 0, 1], groups=[5, 5, 2])
    assert np.asarray(scores.select(np.array([2, 0])).group_N).tolist() == [2, 5]
    assert np.asarray(join_scores([scores, scores]).group_N).tolist() == [5, 5, 2] * 2
    assert image_scores([[0.9, 0.1]], [0]).groups is None
    with pytest.raises(InputError, match="groups has shape"):
        image_scores([[0.9, 0.1]], [0], groups=[1, 2])


def test_the_order_of_images_changes_nothing() -> None:
    scores = replace(made_scores(200, 3), group_N=np.arange(200) // 7)
    other = scores.select(np.random.default_rng(0).permutation(200))
    found, again = (intervals_over_cells({"fog": [one]}) for one in (scores, other))
    for name, interval in found.items():
        assert vars(again[name]) == pytest.approx(vars(interval), abs=1e-6), name
    floors = [noise_floor(one.confidence, one.correct, groups=one.group_N) for one in (scores, other)]
    assert vars(floors[0]) == pytest.approx(vars(floors[1]))


def test_coverage(script: dict[str, Any]) -> None:
    """results/simulations/groups.txt has the figures of many more samples."""
    case = script["Case"](25, 12, 0.4)
    for world, figures in (("CLEAN", {"error", "ECE", "error, paired", "ECE, paired"}), ("SHIFTED", {"error", "ECE"})):
        found = script["simulate"](script[world], case, script["RUNS"]["far off"], 30, 0)
        assert figures <= found.keys()
        assert min(over_groups for over_groups, _ in found.values()) >= 0.85
        assert found["error"][1] < 0.8, "over images the interval is too short"


def test_copies_of_known_images_prove_nothing_new_about_an_auroc() -> None:
    """But for the prior, which counts less where there are more images that tell something."""
    rng = np.random.default_rng(0)
    known, outside, other = rng.normal(1, 1, 200), rng.normal(size=5000), rng.normal(1.2, 1, 200)
    images = np.tile(np.arange(200), 4)
    copies = ood_auroc_interval(known[images], outside, images)
    once, alone = ood_auroc_interval(known, outside), ood_auroc_interval(known[images], outside)
    assert copies.value == pytest.approx(once.value)
    assert length(copies) == pytest.approx(length(once), rel=0.05)
    assert length(alone) < 0.65 * length(once)
    twice = ood_auroc_difference(known[images], outside, other[images], outside, images)
    expected = ood_auroc_difference(known, outside, other, outside)
    assert length(twice) == pytest.approx(length(expected), rel=0.05)
    assert ood_auroc_interval(known, outside, np.arange(200)) == once
    assert ood_auroc_difference(known, outside, other, outside, np.arange(200)) == expected
    with pytest.raises(InputError, match="of 4 groups"):
        ood_auroc_interval(known, outside, np.arange(200) % 4)


@pytest.mark.parametrize(("groups", "images"), [(20, 10), (60, 5)])
def test_coverage_of_an_auroc_whose_known_images_are_in_groups(groups: int, images: int) -> None:
    rng = np.random.default_rng(0)
    group_N = np.repeat(np.arange(groups), images)
    truth, held = 0.9, np.zeros(3)
    shift = np.sqrt(2) * stats.norm.ppf(truth)
    for _ in range(300):
        shared, own = rng.normal(size=groups)[group_N], rng.normal(size=(2, len(group_N)))
        known, outside = shift + np.sqrt(0.5) * (shared + own[0]), rng.normal(size=400)
        other = shift + np.sqrt(0.5) * (shared + own[1])
        over_groups, over_images = (ood_auroc_interval(known, outside, one) for one in (group_N, None))
        difference = ood_auroc_difference(known, outside, other, outside, group_N)
        found = ((over_groups, truth), (difference, 0), (over_images, truth))
        held += [one.low <= true <= one.high for one, true in found]
    covered = held / 300
    assert covered[0] > 0.92
    assert covered[1] > 0.92
    assert covered[2] < 0.9
