import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score, roc_curve

from counterpoint.errors import InputError
from counterpoint.metrics import (
    aurc,
    error,
    image_scores,
    ood_auroc,
    ood_auroc_difference,
    ood_auroc_interval,
    ood_fpr,
    risk_coverage,
)

tied = st.integers(0, 6).map(lambda i: i / 6)


def test_by_hand() -> None:
    """Most confident first: right, wrong, right, wrong."""
    curve = risk_coverage([0.6, 0.9, 0.7, 0.8], [0, 1, 1, 0])
    assert curve.coverage.tolist() == [0.25, 0.5, 0.75, 1.0]
    assert curve.risk == pytest.approx([0, 1 / 2, 1 / 3, 2 / 4])
    assert curve.area == aurc([0.6, 0.9, 0.7, 0.8], [0, 1, 1, 0]) == pytest.approx((1 / 2 + 1 / 3 + 1 / 2) / 4)


def test_equal_confidences_share_their_errors() -> None:
    curve = risk_coverage([0.9, 0.5, 0.5], [1, 0, 1])
    assert curve.risk == pytest.approx([0, 0.5 / 2, 1 / 3])


@given(st.lists(st.tuples(tied, st.booleans()), min_size=1, max_size=6))
@settings(deadline=None, max_examples=60)
def test_it_is_the_mean_over_all_orders_of_equals(pairs: list[tuple[float, bool]]) -> None:
    curves = []
    for order in permutations(pairs):
        if all(a[0] >= b[0] for a, b in pairwise(order)):
            wrong = [not right for _, right in order]
            curves.append([sum(wrong[:k]) / k for k in range(1, len(order) + 1)])
    curve = risk_coverage([c for c, _ in pairs], [right for _, right in pairs])
    assert curve.risk == pytest.approx(np.mean(curves, axis=0))


def test_the_order_of_images_changes_no_bit_and_the_end_is_the_error() -> None:
    rng = np.random.default_rng(0)
    probs = rng.integers(1, 4, size=(300, 4)).astype(float)
    probs /= probs.sum(axis=1, keepdims=True)
    labels = rng.integers(4, size=300)
    scores = image_scores(probs, labels)
    order = rng.permutation(300)
    curve, shuffled = (risk_coverage(scores.confidence[i], scores.correct[i]) for i in (np.arange(300), order))
    assert (curve.risk == shuffled.risk).all()
    assert curve.risk[-1] == pytest.approx(error(probs, labels))


def test_bounds_of_the_area() -> None:
    """Confidence that puts all errors last does best, the other way round worst."""
    correct = [1] * 80 + [0] * 20
    best, worst = (aurc(confidence, correct) for confidence in (np.linspace(1, 0, 100), np.linspace(0, 1, 100)))
    assert best == pytest.approx(sum((k - 80) / k for k in range(81, 101)) / 100)
    assert aurc([0.5] * 100, correct) == pytest.approx(0.2)
    assert best < 0.2 < worst


@given(st.lists(tied, min_size=1, max_size=30), st.lists(tied, min_size=1, max_size=30))
@settings(deadline=None)
def test_auroc_is_the_plain_loop_and_scikit_learn(inside: list[float], outside: list[float]) -> None:
    wins = sum((a > b) + (a == b) / 2 for a in inside for b in outside)
    assert ood_auroc(inside, outside) == pytest.approx(wins / len(inside) / len(outside))
    labels = [1] * len(inside) + [0] * len(outside)
    assert ood_auroc(inside, outside) == pytest.approx(roc_auc_score(labels, inside + outside))


def test_auroc_at_its_ends() -> None:
    assert ood_auroc([0.9, 0.8], [0.7, 0.1, 0.2]) == 1
    assert ood_auroc([0.1], [0.7, 0.8]) == 0
    assert ood_auroc([0.5, 0.5], [0.5]) == 0.5


@pytest.mark.parametrize(
    ("confidence", "correct", "says"),
    [([], [], "at least one"), ([math.nan], [1], "nan"), ([0.5], [0.5], "0 or 1"), ([0.5, 0.5], [1], r"\(2,\)")],
)
def test_nonsense_is_refused(confidence: Any, correct: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        risk_coverage(confidence, correct)


def test_auroc_takes_any_number_that_is_higher_for_known_images() -> None:
    """Minus the entropy, for instance. Only the order counts."""
    assert ood_auroc([-0.1, -0.2], [-0.15, -3.0]) == ood_auroc([0.9, 0.8], [0.85, 0.3]) == 0.75


def test_auroc_refuses_nonsense() -> None:
    for metric in (ood_auroc, ood_auroc_interval, ood_fpr):
        with pytest.raises(InputError, match="confidence_out has shape"):
            metric([0.5], [])
        with pytest.raises(InputError, match="confidence_in holds nan"):
            metric([math.nan], [0.5])
    for tpr in (0.0, 1.01, math.nan):
        with pytest.raises(InputError, match=r"tpr is .*; it must be above 0 and at most 1"):
            ood_fpr([0.5], [0.5], tpr)


def test_fpr_by_hand() -> None:
    """19 of 20 known images must be accepted: the threshold is the second lowest, 0.11, and a tie is accepted."""
    known = [0.01, *(0.11 + i / 100 for i in range(19))]
    assert ood_fpr(known, [0.0, 0.10, 0.11, 0.12, 0.9]) == 3 / 5
    assert ood_fpr(known, [0.0, 0.10, 0.11, 0.12, 0.9], tpr=1.0) == 4 / 5
    assert ood_fpr([0.5, 0.5], [0.5, 0.4]) == 0.5
    assert ood_fpr([0.9], [0.1]) == 0


@given(st.lists(tied, min_size=1, max_size=40), st.lists(tied, min_size=1, max_size=30), st.integers(1, 20))
@settings(deadline=None)
def test_fpr_is_the_plain_loop_and_scikit_learn(inside: list[float], outside: list[float], twentieths: int) -> None:
    """Of all values as thresholds, the highest that keeps enough known images."""
    enough = [t for t in inside if 20 * sum(a >= t for a in inside) >= twentieths * len(inside)]
    wanted = sum(b >= max(enough) for b in outside) / len(outside)
    assert ood_fpr(inside, outside, twentieths / 20) == wanted
    labels = [1] * len(inside) + [0] * len(outside)
    fpr, tpr, _ = roc_curve(labels, inside + outside, drop_intermediate=False)
    assert wanted == pytest.approx(fpr[np.argmax(tpr >= twentieths / 20 - 1e-12)])


def placements(inside: list[float], outside: list[float]) -> tuple[np.ndarray, np.ndarray]:
    wins = np.array([[(a > b) + (a == b) / 2 for b in outside] for a in inside], dtype=float)
    return wins.mean(axis=1), wins.mean(axis=0)


def test_interval_by_hand() -> None:
    """Two known images and two outside ones, of which one pair is out of order: AUROC 3/4.

    Placements are 1 and 1/2 for either kind. Their variance is 1/8, which is 2/3 of the largest, 3/16. One image of a
    kind is out of order, so the share is (2/3 + 2) / (1 + 2) = 8/9. Two such shares of one half each are 8/9, and more
    than 1/2, the most that pairs allow. So it is Wilson's interval of 3/4 of 2 images.
    """
    found, z = ood_auroc_interval([0.9, 0.5], [0.7, 0.1]), 1.959963984540054
    centre, margin = (0.75 + z * z / 4) / (1 + z * z / 2), z * math.sqrt(3 / 32 + z * z / 16) / (1 + z * z / 2)
    assert (found.value, found.low, found.high) == pytest.approx((0.75, centre - margin, centre + margin))


@given(st.lists(tied, min_size=2, max_size=25), st.lists(tied, min_size=2, max_size=25))
@settings(deadline=None)
def test_interval_solves_the_score_equation(inside: list[float], outside: list[float]) -> None:
    """Its ends are the AUROCs that lie 1.96 standard errors away, by the slow definition of each variance."""
    found = ood_auroc_interval(inside, outside)
    assert found.value == pytest.approx(ood_auroc(inside, outside))
    assert 0 <= found.low <= found.value <= found.high <= 1
    per_image = 0.0
    for placed in placements(inside, outside):
        largest = found.value * (1 - found.value)
        share = min(np.var(placed, ddof=1) / largest, 1) if largest > 1e-12 else 1.0
        out_of_order = sum(placed < 1 - 1e-12) if found.value >= 0.5 else sum(placed > 1e-12)
        per_image += (out_of_order * share + 2) / (out_of_order + 2) / len(placed)
    per_image = min(per_image, 1 / min(len(inside), len(outside)))
    for end in (found.low, found.high):
        variance = end * (1 - end) * per_image
        assert abs(found.value - end) == pytest.approx(1.959964 * math.sqrt(max(variance, 0)), abs=1e-6)


def test_interval_of_many_images_is_delongs() -> None:
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(1.2, 1, 3000), rng.normal(0, 1, 2000)
    known_N, outside_N = ((inside[:, None] > outside).mean(axis=axis) for axis in (1, 0))
    error = math.sqrt(known_N.var(ddof=1) / 3000 + outside_N.var(ddof=1) / 2000)
    found = ood_auroc_interval(inside, outside)
    assert (found.high - found.low) / 2 == pytest.approx(1.96 * error, rel=0.01)
    assert (found.high + found.low) / 2 == pytest.approx(found.value, abs=0.001)


def test_interval_of_images_that_are_fully_apart_has_a_length() -> None:
    apart = ood_auroc_interval([0.9] * 50, [0.1] * 50)
    assert (apart.value, apart.high) == (1, 1)
    assert apart.low == pytest.approx(50 / (50 + 1.959964**2), abs=1e-6)
    one = ood_auroc_interval([0.9], [0.1])
    assert (one.value, one.high) == (1, 1)
    assert one.low == pytest.approx(1 / (1 + 1.959964**2), abs=1e-6)
    other_way = ood_auroc_interval([0.1] * 50, [0.9] * 50)
    assert (other_way.value, other_way.low, other_way.high) == pytest.approx((0, 0, 1 - apart.low))


@pytest.mark.parametrize("truth", [0.6, 0.95, 0.995])
def test_interval_covers_the_truth(truth: float) -> None:
    """`python benchmarks/auroc_coverage.py` has more cases. The standard error of 400 draws is 1.1 points."""
    rng = np.random.default_rng(1)
    distance = np.sqrt(2) * ndtri(truth)
    draws = [ood_auroc_interval(rng.normal(distance, 1, 150), rng.normal(0, 1, 60)) for _ in range(400)]
    covered = np.mean([interval.low <= truth <= interval.high for interval in draws])
    assert covered >= 0.93


def test_difference_of_two_aurocs_by_hand() -> None:
    known, outside, other = [0.9, 0.5], [0.7, 0.1], [0.95, 0.6]
    found, z = ood_auroc_difference(known, outside, known, other), 1.959963984540054
    # In order: of ours 2 and 1 of the outside images, of the other 1 and 0. So both known images gain a half, and the
    # outside images a half each.
    assert found.value == pytest.approx(0.75 - 0.25)
    margin = z * np.sqrt(2 * (0 + 1) / 2**2)
    assert (found.low, found.high) == pytest.approx((max(0.5 - margin, -1), min(0.5 + margin, 1)))
    back = ood_auroc_difference(known, other, known, outside)
    assert (back.value, back.low, back.high) == pytest.approx((-found.value, -found.high, -found.low))


def test_difference_of_two_aurocs_is_that_of_the_aurocs() -> None:
    rng = np.random.default_rng(5)
    known_2N, outside_2N = rng.integers(3, 9, (2, 40)) / 10, rng.integers(0, 7, (2, 25)) / 10
    aurocs = [ood_auroc(*pair) for pair in zip(known_2N, outside_2N, strict=True)]
    found = ood_auroc_difference(known_2N[0], outside_2N[0], known_2N[1], outside_2N[1])
    assert found.value == pytest.approx(aurocs[0] - aurocs[1])
    assert found.low < found.value < found.high
    same = ood_auroc_difference(known_2N[0], outside_2N[0], known_2N[0], outside_2N[0])
    assert same.value == 0
    assert same.high == -same.low == pytest.approx(1.959964 * np.hypot(1 / 40, 1 / 25), rel=1e-6)


def test_two_models_need_the_same_images() -> None:
    with pytest.raises(InputError, match="there are 2 and 3 outside images; both models need the same ones"):
        ood_auroc_difference([0.9], [0.1, 0.2], [0.8], [0.1, 0.2, 0.3])
    with pytest.raises(InputError, match="there are 1 and 2 known images"):
        ood_auroc_difference([0.9], [0.1], [0.8, 0.9], [0.1])


@pytest.mark.parametrize(("correlation", "truths"), [(0.0, (0.6, 0.7)), (0.7, (0.9, 0.9)), (0.7, (0.99, 0.95))])
def test_difference_covers_the_truth(correlation: float, truths: tuple[float, float]) -> None:
    """More cases: `python benchmarks/auroc_difference_coverage.py`. The standard error of 400 draws is 1.1 points."""
    rng = np.random.default_rng(2)
    root = np.array([[1, 0], [correlation, np.sqrt(1 - correlation**2)]])
    covered = 0
    for _ in range(400):
        known, outside = root @ rng.normal(size=(2, 150)), root @ rng.normal(size=(2, 60))
        known += np.sqrt(2) * ndtri(np.array(truths))[:, None]
        found = ood_auroc_difference(known[0], outside[0], known[1], outside[1])
        covered += found.low <= truths[0] - truths[1] <= found.high
    assert covered >= 0.93 * 400
