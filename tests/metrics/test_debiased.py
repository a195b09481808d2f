import math
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.metrics import Interval, ece, ece_debiased, ece_rms, ece_rms_debiased, noise_floor
from counterpoint.metrics.calibration import Binning

ESTIMATORS: tuple[Callable[..., Interval], ...] = (ece_debiased, ece_rms_debiased)
SAMPLES = 200

pairs_of_images = st.lists(
    st.tuples(st.one_of(st.integers(0, 20).map(lambda i: i / 20), st.floats(0, 1)), st.booleans()),
    min_size=1,
    max_size=40,
)


@pytest.mark.parametrize(
    ("kind", "temperature", "shift", "images", "binning"),
    [
        ("sure", 1.0, 0.0, 500, "width"),
        ("sure", 1.0, 0.0, 10_000, "mass"),
        ("sure", 1.0, 0.015, 5000, "width"),
        ("sure", 1.25, 0.0, 10_000, "mass"),
        ("sure", 2.5, 0.0, 500, "width"),
        ("spread", 1.0, 0.0, 5000, "mass"),
        ("spread", 1.0, 0.015, 500, "width"),
        ("spread", 0.9, 0.0, 5000, "mass"),
        ("spread", 1.0, 0.1, 10_000, "width"),
    ],
)
def test_coverage(population: Any, kind: str, temperature: float, shift: float, images: int, binning: Binning) -> None:
    """Perfect, 1–2 % off and about 10 % off; over 400 samples 54 such regimes were covered in 92 to 99 %."""
    model, rng = population(kind, temperature, shift), np.random.default_rng(0)
    covered = np.zeros(2)
    for _ in range(SAMPLES):
        confidence, correct = model.draw(images, rng)
        for i, truth in enumerate(model.true_errors(confidence, binning)):
            found = ESTIMATORS[i](confidence, correct, 15, binning)
            covered[i] += found.low <= truth + 1e-9 and truth - 1e-9 <= found.high
    assert (covered >= 0.92 * SAMPLES).all()
    assert (covered <= 0.99 * SAMPLES).all()


@pytest.mark.parametrize("shift", [0.0, 0.01, 0.02])
def test_the_noise_is_taken_out(population: Any, shift: float) -> None:
    """On the mean of many samples the plug-in values are too high, the debiased ones nearly right."""
    model, rng = population("spread", shift=shift), np.random.default_rng(0)
    plug_in, debiased = [], []
    for _ in range(100):
        sample = model.draw(1000, rng)
        plug_in.append([ece(*sample), ece_rms(*sample)])
        debiased.append([ece_debiased(*sample).value, ece_rms_debiased(*sample).value])
    bias, left = (np.abs(np.mean(values, axis=0) - shift) for values in (plug_in, debiased))
    assert (left < 0.5 * bias).all()


def pair_products_by_loop(confidence: np.ndarray, correct: np.ndarray, bins: int) -> float:
    images = defaultdict(list)
    for c, right in zip(confidence.tolist(), correct.tolist(), strict=True):
        images[min(math.ceil(c * bins), bins)].append(right - c)
    total = 0.0
    for surplus in images.values():
        products = [a * b for i, a in enumerate(surplus) for j, b in enumerate(surplus) if i != j]
        total += sum(products) / (len(surplus) - 1) if len(surplus) > 1 else 0.0
    return total / len(confidence)


@pytest.mark.parametrize("seed", range(5))
def test_ece_rms_is_the_plain_loop_over_pairs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    confidence = rng.random(60)
    correct = rng.random(60) < confidence / 2
    squared = pair_products_by_loop(confidence, correct, 15)
    assert squared > 0
    assert ece_rms_debiased(confidence, correct).value == pytest.approx(math.sqrt(squared))


def test_kumar_where_the_confidences_of_a_bin_are_equal() -> None:
    """(gap² − accuracy · (1 − accuracy) / (n − 1)) of each bin: 0.7 of 10 against 0.9, 0.25 of 4 against 0.6."""
    confidence, correct = [0.9] * 10 + [0.6] * 4, [1] * 7 + [0] * 3 + [1, 0, 0, 0]
    first_bin, second_bin = 0.2**2 - 0.7 * 0.3 / 9, 0.35**2 - 0.25 * 0.75 / 3
    expected = math.sqrt((10 * first_bin + 4 * second_bin) / 14)
    assert ece_rms_debiased(confidence, correct).value == pytest.approx(expected)


def test_noise_alone_is_no_miscalibration() -> None:
    """Half of the images of confidence 0.5 are right: less than noise gives, so both estimates are 0."""
    for estimate in ESTIMATORS:
        found = estimate([0.5] * 20, [0, 1] * 10)
        assert (found.value, found.low) == (0, 0)
        assert found.high >= 0.728 - 0.5  # Clopper and Pearson's limit for 10 of 20


def test_strong_miscalibration_is_left_alone() -> None:
    rng = np.random.default_rng(0)
    confidence, correct = np.full(50_000, 0.95), rng.random(50_000) < 0.6
    for estimate, plug_in in zip(ESTIMATORS, (ece, ece_rms), strict=True):
        found = estimate(confidence, correct)
        assert found.value == pytest.approx(plug_in(confidence, correct), abs=1e-4)
        assert found.high - found.low == pytest.approx(2 * 1.96 * math.sqrt(0.24 / 50_000), rel=0.03)


@pytest.mark.parametrize("confidence", [1.0, 0.99999])
def test_no_error_among_300_sure_images(confidence: float) -> None:
    """Accuracy a shows no error in 300 images with chance a^300, which is 2.5 % at the interval's end."""
    for estimate in ESTIMATORS:
        found = estimate([confidence] * 300, [1] * 300)
        assert found.low == 0
        assert found.high == pytest.approx(confidence - 0.025 ** (1 / 300))


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_the_floor_decides_whether_the_interval_reaches_0(population: Any, binning: Binning) -> None:
    rng = np.random.default_rng(1)
    for shift in (0.0, 0.01, 0.02, 0.03):
        confidence, correct = population("spread", shift=shift).draw(3000, rng)
        floor = noise_floor(confidence, correct, 15, binning, simulations=2000)
        found = ece_debiased(confidence, correct, 15, binning)
        if floor.ece_excess < 1.6 * floor.ece_sd:
            assert found.low == 0
        if floor.ece_excess > 2.4 * floor.ece_sd:
            assert found.low > 0


@given(pairs_of_images, st.sampled_from([1, 2, 15]), st.sampled_from(["width", "mass"]))
@settings(deadline=None, max_examples=60)
def test_any_images_have_an_interval_around_the_value(
    pairs: list[tuple[float, bool]], bins: int, binning: Binning
) -> None:
    confidence, correct = [c for c, _ in pairs], [right for _, right in pairs]
    for estimate, plug_in in zip(ESTIMATORS, (ece, ece_rms), strict=True):
        found = estimate(confidence, correct, bins, binning)
        assert 0 <= found.low <= found.value <= found.high <= 1 + 1e-9
        assert found.value <= plug_in(confidence, correct, bins, binning) + 1e-6


@given(pairs_of_images, st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=40)
def test_the_order_of_images_changes_no_bit(pairs: list[tuple[float, bool]], random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    for estimate in ESTIMATORS:
        assert estimate(*zip(*pairs, strict=True)) == estimate(*zip(*shuffled, strict=True))


def test_one_image() -> None:
    for estimate in ESTIMATORS:
        found = estimate([0.7], [1])
        assert found.value == found.low == 0
        assert found.high > 0.5


@pytest.mark.parametrize("estimate", ESTIMATORS)
def test_nonsense_is_refused(estimate: Callable[..., Interval]) -> None:
    for confidence, correct, says in [
        ([], [], r"shape \(0,\)"),
        ([math.nan], [1], "holds nan"),
        ([1.1], [1], "between 0 and 1"),
        ([0.5], [2], "must be 0 or 1"),
        ([0.5, 0.5], [1], r"must be \(2,\)"),
    ]:
        with pytest.raises(InputError, match=says):
            estimate(confidence, correct)
    with pytest.raises(InputError, match="whole number"):
        estimate([0.5], [1], bins=0)
    with pytest.raises(InputError, match="did you mean 'mass'"):
        estimate([0.5], [1], binning="mas")
