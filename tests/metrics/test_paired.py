import math
from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.metrics import (
    ImageScores,
    brier,
    calibration_differences,
    ece_debiased,
    ece_rms_debiased,
    error,
    error_difference,
    image_scores,
    mean_difference,
    nll,
    paired_differences,
)
from counterpoint.metrics.calibration import Binning

SAMPLES = 200


def scores(confidence: np.ndarray, correct: np.ndarray) -> ImageScores:
    return ImageScores(confidence, correct, nll=np.zeros(len(correct)), brier=np.zeros(len(correct)))


def two_runs(ours: Any, other: Any, images: int, rng: np.random.Generator) -> tuple[ImageScores, ImageScores]:
    """Both see the same images: related confidences, and on two images of three the same luck."""
    i = rng.integers(len(ours.confidence_P), size=images)
    near_i = np.clip(i + rng.integers(-1000, 1001, size=images), 0, len(ours.confidence_P) - 1)
    luck, other_luck = rng.random(images), rng.random(images)
    other_luck = np.where(rng.random(images) < 2 / 3, luck, other_luck)
    return (
        scores(ours.confidence_P[i], luck < ours.chance_P[i]),
        scores(other.confidence_P[near_i], other_luck < other.chance_P[near_i]),
    )


@pytest.mark.parametrize(
    ("kind", "ours", "theirs", "images"),
    [
        ("sure", (2.5, 0.0), (1.25, 0.0), 2000),
        ("sure", (1.0, 0.0), (1.0, 0.0), 1000),
        ("spread", (1.0, 0.1), (1.0, 0.05), 2000),
    ],
)
def test_coverage_of_calibration_differences(
    population: Any, kind: str, ours: tuple[float, float], theirs: tuple[float, float], images: int
) -> None:
    """At least 92 %; two runs near perfect calibration are covered more often, because neither can be below it."""
    populations, rng = (population(kind, *ours), population(kind, *theirs)), np.random.default_rng(0)
    covered: Counter[str] = Counter()
    for _ in range(SAMPLES):
        runs = two_runs(*populations, images, rng)
        found = calibration_differences({"clean": [runs[0]]}, {"clean": [runs[1]]})
        for binning in get_args(Binning):
            truths = zip(
                *(p.true_errors(run.confidence, binning) for p, run in zip(populations, runs, strict=True)), strict=True
            )
            for metric, (truth, other_truth) in zip(("ece", "ece_rms"), truths, strict=True):
                interval = found[f"{metric}_{binning}15_debiased"]
                covered[f"{metric}, {binning}"] += interval.low - 1e-9 <= truth - other_truth <= interval.high + 1e-9
    assert len(covered) == 4
    assert min(covered.values()) >= 0.92 * SAMPLES, covered


def test_pairing_shortens_the_interval(population: Any) -> None:
    model, rng = population("spread", shift=0.1), np.random.default_rng(0)
    a, b = two_runs(model, model, 5000, rng)
    order = rng.permutation(5000)
    shuffled = scores(b.confidence[order], b.correct[order])
    both, apart = paired_differences(a, b), paired_differences(a, shuffled)
    for name in ("ece_width15_debiased", "ece_rms_width15_debiased"):
        paired, unpaired = both[name], apart[name]
        assert paired.value == pytest.approx(unpaired.value, abs=1e-7)
        assert paired.high - paired.low < 0.75 * (unpaired.high - unpaired.low)


def test_value_is_nearly_the_difference_of_the_debiased_ones(population: Any) -> None:
    a, b = two_runs(population("spread", shift=0.1), population("spread", shift=0.02), 4000, np.random.default_rng(0))
    found = paired_differences(a, b)
    for name, estimate in (("ece", ece_debiased), ("ece_rms", ece_rms_debiased)):
        apart = estimate(a.confidence, a.correct).value - estimate(b.confidence, b.correct).value
        assert found[f"{name}_width15_debiased"].value == pytest.approx(apart, abs=0.001)
        assert found[f"{name}_width15_debiased"].low > 0


def test_a_run_and_itself() -> None:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([0.3] * 5, size=400)
    run = image_scores(probs, rng.integers(5, size=400))
    for found in paired_differences(run, run).values():
        assert found.value == 0
        assert found.low <= 0 <= found.high


def test_means_by_hand() -> None:
    """Differences 1, 2, 3, 6: mean 3, standard deviation √(14/3), Student's t with 3 degrees of freedom 3.182446."""
    found = mean_difference([2, 4, 6, 8], [1, 2, 3, 2])
    margin = 3.182446 * math.sqrt(14 / 3) / 2
    assert [found.value, found.low, found.high] == pytest.approx([3, 3 - margin, 3 + margin], rel=1e-6)


def test_errors_by_hand() -> None:
    """Of 10 images 3 are right in the other run only, 1 in ours only: with one more each, 4 and 2 of 12."""
    ours, theirs = [0, 0, 0, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 1, 1, 1, 1, 0, 0]
    found = error_difference(ours, theirs)
    margin = 1.959964 * math.sqrt((6 / 12 - (2 / 12) ** 2) / 12)
    assert [found.value, found.low, found.high] == pytest.approx([0.2, 2 / 12 - margin, 2 / 12 + margin], rel=1e-6)


def test_runs_that_never_differ_are_not_proven_equal() -> None:
    found = error_difference([1] * 100, [1] * 100)
    assert found.value == 0
    assert found.high == -found.low == pytest.approx(1.959964 * math.sqrt(2 / 102 / 102), rel=1e-6)


@pytest.mark.parametrize(("better", "images"), [(0.02, 60), (0.1, 60), (0.02, 2000)])
def test_coverage_of_error_and_mean_differences(better: float, images: int) -> None:
    rng = np.random.default_rng(0)
    of_error = of_mean = 0
    for _ in range(2000):
        luck = rng.random((2, images))
        ours, theirs = luck[0] > 0.1, np.where(luck[1] < 0.8, luck[0], rng.random(images)) > 0.1 + better
        found, mean = error_difference(ours, theirs), mean_difference(luck[0] ** 2, luck[0] + luck[1])
        of_error += found.low <= -better <= found.high
        of_mean += mean.low <= 1 / 3 - 1 <= mean.high
    assert of_error / 2000 >= 0.94  # more where few images differ
    assert 0.935 <= of_mean / 2000 <= 0.965


def test_all_differences_have_their_estimator_in_the_name() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(5, size=300)
    our_probs, their_probs = (rng.dirichlet([0.3] * 5, size=300) for _ in range(2))
    ours, theirs = image_scores(our_probs, labels), image_scores(their_probs, labels)
    found = paired_differences(ours, theirs)
    for name, metric in (("error", error), ("nll", nll), ("brier", brier)):
        assert found.pop(name).value == pytest.approx(metric(our_probs, labels) - metric(their_probs, labels))
    assert found == calibration_differences({"clean": [ours]}, {"clean": [theirs]})


def test_nonsense_is_refused() -> None:
    with pytest.raises(InputError, match="3 and 2 images"):
        mean_difference([1, 2, 3], [1, 2])
    with pytest.raises(InputError, match="at least two"):
        mean_difference([1], [1])
    with pytest.raises(InputError, match="holds nan"):
        mean_difference([1, math.nan], [1, 2])
    with pytest.raises(InputError, match="must be 0 or 1"):
        error_difference([1, 0], [1, 2])
    three, four = (scores(np.full(n, 0.5), np.ones(n, dtype=bool)) for n in (3, 4))
    with pytest.raises(InputError, match="3 and 4 images; they must be evaluated on the same ones"):
        paired_differences(three, four)
