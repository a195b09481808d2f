import math
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from counterpoint.errors import InputError
from counterpoint.metrics import aurc, error, image_scores, ood_auroc, risk_coverage

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


def test_auroc_refuses_nonsense() -> None:
    with pytest.raises(InputError, match="confidence_out has shape"):
        ood_auroc([0.5], [])
    with pytest.raises(InputError, match="confidence_in holds 2"):
        ood_auroc([2.0], [0.5])
