import math
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torchmetrics.functional.classification import binary_calibration_error, multiclass_calibration_error

from counterpoint.errors import InputError
from counterpoint.metrics import ReliabilityBins, ece, ece_rms, overconfidence, reliability_bins
from counterpoint.metrics.calibration import Binning

BINNINGS: tuple[Binning, ...] = get_args(Binning)
Pairs = list[tuple[float, bool]]

# Values on a grid of 1/60 meet ties and the edges of 15, 12 and 10 bins; the rest are any floats.
confidences = st.one_of(st.integers(0, 60).map(lambda i: i / 60), st.floats(0, 1))
pairs_of_images = st.lists(st.tuples(confidences, st.booleans()), min_size=1, max_size=60)
any_binning = st.sampled_from(BINNINGS)
any_bins = st.sampled_from([1, 2, 10, 12, 15])


def bin_by_loop(pairs: Pairs, bins: int, binning: Binning) -> list[Pairs]:
    """Each image looked at on its own: the first bin whose upper edge is not below its confidence."""
    confidences = sorted(c for c, _ in pairs)
    uppers = []
    for k in range(1, bins):
        if binning == "width":
            uppers.append(k / bins)
        else:
            reach = [c for c in confidences if sum(d <= c for d in confidences) * bins >= k * len(pairs)]
            uppers.append(min(reach))
    uppers.append(1.0)
    held: dict[int, Pairs] = defaultdict(list)
    for confidence, correct in pairs:
        held[next(k for k, upper in enumerate(uppers) if confidence <= upper)].append((confidence, correct))
    return [held[k] for k in sorted(held)]


def gaps_by_loop(pairs: Pairs, bins: int, binning: Binning) -> list[tuple[int, float]]:
    gaps = []
    for images in bin_by_loop(pairs, bins, binning):
        confidence = math.fsum(c for c, _ in images) / len(images)
        accuracy = sum(correct for _, correct in images) / len(images)
        gaps.append((len(images), accuracy - confidence))
    return gaps


def split(pairs: Pairs) -> tuple[list[float], list[bool]]:
    return [c for c, _ in pairs], [correct for _, correct in pairs]


@given(pairs_of_images, any_bins, any_binning)
@settings(deadline=None)
def test_ece_is_the_plain_loop(pairs: Pairs, bins: int, binning: Binning) -> None:
    gaps = gaps_by_loop(pairs, bins, binning)
    assert reliability_bins(*split(pairs), bins, binning).count.tolist() == [count for count, _ in gaps]
    mean = sum(count * abs(gap) for count, gap in gaps) / len(pairs)
    mean_square = sum(count * gap**2 for count, gap in gaps) / len(pairs)
    assert ece(*split(pairs), bins, binning) == pytest.approx(mean, abs=1e-12)
    assert ece_rms(*split(pairs), bins, binning) == pytest.approx(math.sqrt(mean_square), abs=1e-12)


def test_values_computed_by_hand() -> None:
    """Ten bins: (0.5, 0.6] is off by 0.55, (0.8, 0.9] by 0.15, (0.9, 1] holds two images and is off by 0.45."""
    confidence, correct = [0.95, 0.85, 0.95, 0.55], [1, 1, 0, 0]
    assert ece(confidence, correct, bins=10) == pytest.approx((0.55 + 0.15 + 2 * 0.45) / 4)
    assert ece_rms(confidence, correct, bins=10) == pytest.approx(math.sqrt((0.55**2 + 0.15**2 + 2 * 0.45**2) / 4))
    table = reliability_bins(confidence, correct, bins=10)
    assert table.low == pytest.approx([0.5, 0.8, 0.9])
    assert table.high == pytest.approx([0.6, 0.9, 1.0])
    assert table.count.tolist() == [1, 1, 2]
    assert table.confidence == pytest.approx([0.55, 0.85, 0.95])
    assert table.accuracy == pytest.approx([0, 1, 0.5])


def test_equal_mass_by_hand() -> None:
    """Two bins of three images each: 0.2 is off by 0.2 − 1/3, 0.8 by 0.8 − 2/3; equal-width bins cut elsewhere."""
    confidence, correct = [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], [0, 1, 0, 1, 0, 1]
    table = reliability_bins(confidence, correct, bins=2, binning="mass")
    assert table.low == pytest.approx([0.0, 0.3])
    assert table.high == pytest.approx([0.3, 1.0])
    assert table.count.tolist() == [3, 3]
    assert ece(confidence, correct, bins=2, binning="mass") == pytest.approx(((1 / 3 - 0.2) + (0.8 - 2 / 3)) / 2)


def test_equal_mass_keeps_ties_together() -> None:
    confidence = [0.5, 0.5, 0.5, 0.5, 0.6, 0.7]
    table = reliability_bins(confidence, [1, 0, 1, 0, 1, 1], bins=3, binning="mass")
    assert table.count.tolist() == [4, 2]  # the second edge is 0.5 again, so the second bin is empty
    assert table.confidence == pytest.approx([0.5, 0.65])


@pytest.mark.parametrize("n", [1, 14, 15, 16, 100, 451])
def test_equal_mass_without_ties_is_level(n: int) -> None:
    confidence = np.random.default_rng(0).permutation(n) / n
    count = reliability_bins(confidence, np.ones(n), bins=15, binning="mass").count
    assert len(count) == min(n, 15)
    assert count.max() - count.min() <= 1


@pytest.mark.parametrize("k", range(16))
def test_an_edge_belongs_to_the_bin_below_it(k: int) -> None:
    table = reliability_bins([k / 15], [True], bins=15)
    assert table.low[0] == (max(k, 1) - 1) / 15
    assert table.high[0] == max(k, 1) / 15


@pytest.mark.parametrize("binning", BINNINGS)
def test_confidence_zero_one_and_just_above(binning: Binning) -> None:
    confidence = [0.0, 1.0, 1.0 + 1e-7]
    table = reliability_bins(confidence, [0, 1, 1], bins=15, binning=binning)
    assert table.count.tolist() == [1, 2]
    assert table.confidence.tolist() == [0.0, 1.0]
    assert ece(confidence, [0, 1, 1], binning=binning) == 0.0
    assert ece(confidence, [1, 0, 0], binning=binning) == 1.0


@pytest.mark.parametrize("binning", BINNINGS)
@pytest.mark.parametrize("score", [ece, ece_rms])
def test_one_image(score: Callable[..., float], binning: Binning) -> None:
    assert score([0.7], [1], binning=binning) == pytest.approx(0.3)


def test_one_bin_compares_the_means() -> None:
    assert ece([0.9, 0.5], [1, 0], bins=1) == pytest.approx(0.7 - 0.5)


def test_overconfidence_is_signed() -> None:
    assert overconfidence([0.9, 0.5], [1, 0]) == pytest.approx(0.7 - 0.5)
    assert overconfidence([0.9, 0.5], [1, 1]) == pytest.approx(0.7 - 1)


@given(pairs_of_images, any_bins, any_binning, st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_of_images_changes_no_bit(pairs: Pairs, bins: int, binning: Binning, random: Any) -> None:
    shuffled = random.sample(pairs, len(pairs))
    assert ece(*split(pairs), bins, binning) == ece(*split(shuffled), bins, binning)
    assert ece_rms(*split(pairs), bins, binning) == ece_rms(*split(shuffled), bins, binning)


@given(pairs_of_images, any_bins, any_binning)
@settings(deadline=None)
def test_bounds_and_repetition(pairs: Pairs, bins: int, binning: Binning) -> None:
    value, rms = ece(*split(pairs), bins, binning), ece_rms(*split(pairs), bins, binning)
    assert 0 <= value <= rms + 1e-12
    assert rms <= 1
    assert ece(*split(pairs * 3), bins, binning) == pytest.approx(value, abs=1e-12)


@given(pairs_of_images, any_bins, any_binning)
@settings(deadline=None)
def test_every_image_is_in_one_bin(pairs: Pairs, bins: int, binning: Binning) -> None:
    table = reliability_bins(*split(pairs), bins, binning)
    assert table.count.min() > 0
    assert table.count.sum() == len(pairs)
    assert (table.low[1:] >= table.high[:-1]).all()
    assert ((table.low <= table.confidence + 1e-12) & (table.confidence <= table.high + 1e-12)).all()


@pytest.mark.parametrize(("score", "norm"), [(ece, "l1"), (ece_rms, "l2")])
def test_torchmetrics_agrees_away_from_the_edges(score: Callable[..., float], norm: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    probs_NK = torch.randn(2000, 7, generator=generator, dtype=torch.float64).mul(2).softmax(1)
    labels_N = probs_NK.sqrt().multinomial(1, generator=generator)[:, 0]  # over-confident, as networks are
    confidence, predicted = probs_NK.max(1)
    correct = predicted == labels_N
    many = multiclass_calibration_error(probs_NK, labels_N, num_classes=7, n_bins=15, norm=norm)
    binary = binary_calibration_error(confidence, correct.long(), n_bins=15, norm=norm)
    assert score(confidence, correct) == pytest.approx(float(many), abs=1e-6)  # torchmetrics turns it to float32
    assert score(confidence, correct) == pytest.approx(float(binary), abs=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensors_are_taken_as_they_are(dtype: torch.dtype) -> None:
    confidence = torch.rand(100, generator=torch.Generator().manual_seed(0)).to(dtype)
    correct = confidence > 0.4
    assert ece(confidence, correct) == ece(confidence.double().numpy(), correct.numpy())


@pytest.mark.parametrize("function", [ece, ece_rms, overconfidence, reliability_bins])
@pytest.mark.parametrize(
    ("confidence", "correct", "says"),
    [
        ([], [], r"shape \(0,\)"),
        ([[0.5]], [1], "one axis, with one number per image"),
        ([0.5, 0.5], [1], r"must be \(2,\)"),
        ([0.5], [[1]], r"must be \(1,\)"),
        ([math.nan], [1], "holds nan"),
        ([math.inf], [1], "holds inf"),
        ([-1e-7], [1], "between 0 and 1"),
        ([1.00001], [1], "1.00001; every value must lie between 0 and 1"),
        ([0.5], [2], "must be 0 or 1"),
        ([0.5], [0.5], "must be 0 or 1"),
        ([0.5], [math.nan], "must be 0 or 1"),
        (["high"], [1], "real numbers"),
        ([0.5 + 0j], [1], "real numbers"),
        ([[0.5], [0.5, 0.5]], [1], "cannot be read"),
    ],
)
def test_nonsense_is_refused(
    function: Callable[..., float | ReliabilityBins], confidence: Any, correct: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        function(confidence, correct)


@pytest.mark.parametrize("bins", [0, -1, 2.5, "15"])
def test_bins_must_be_a_positive_integer(bins: Any) -> None:
    with pytest.raises(InputError, match="whole number"):
        ece([0.5], [1], bins)


def test_an_unknown_binning_is_named() -> None:
    with pytest.raises(InputError, match="did you mean 'width'"):
        ece([0.5], [1], 15, "widht")  # type: ignore[arg-type]


def test_metrics_import_no_torch() -> None:
    code = "import sys; sys.modules['torch'] = None; import counterpoint.metrics"
    subprocess.run([sys.executable, "-c", code], check=True)
