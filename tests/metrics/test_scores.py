import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.metrics import brier, error, nll

PROBS = [[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]]
LABELS = [0, 2]


def random_probs(n: int, classes: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.3), size=n), rng.integers(classes, size=n)


def test_values_computed_by_hand() -> None:
    assert error(PROBS, LABELS) == 0.5
    assert nll(PROBS, LABELS) == pytest.approx(-(math.log(0.7) + math.log(0.3)) / 2)
    assert brier(PROBS, LABELS) == pytest.approx(((0.09 + 0.04 + 0.01) + (0.01 + 0.36 + 0.49)) / 2)


@given(st.integers(1, 30), st.integers(2, 8), st.integers(0, 1000))
@settings(deadline=None)
def test_scores_are_the_plain_loop(n: int, classes: int, seed: int) -> None:
    probs, labels = random_probs(n, classes, seed)
    wrong = surprise = squares = 0.0
    for row, label in zip(probs.tolist(), labels.tolist(), strict=True):
        wrong += row.index(max(row)) != label
        surprise += -math.log(max(row[label], 1.1754943508222875e-38))
        squares += sum((p - (k == label)) ** 2 for k, p in enumerate(row))
    assert error(probs, labels) == pytest.approx(wrong / n)
    assert nll(probs, labels) == pytest.approx(surprise / n)
    assert brier(probs, labels) == pytest.approx(squares / n)


def test_torch_and_float32_agree() -> None:
    probs, labels = random_probs(200, 10, seed=0)
    probs_torch, labels_torch = torch.from_numpy(probs).float(), torch.from_numpy(labels)
    expected = torch.nn.functional.nll_loss(probs_torch.double().log(), labels_torch)
    assert nll(probs_torch, labels_torch) == pytest.approx(float(expected))
    assert error(probs_torch, labels_torch) == error(probs, labels)
    assert brier(probs_torch, labels_torch) == pytest.approx(brier(probs, labels), abs=1e-6)


def test_sure_and_right_is_a_positive_zero() -> None:
    for score in (error, nll, brier):
        assert math.copysign(1, score([[0, 1]], [1])) == 1
        assert score([[0, 1]], [1]) == 0


def test_sure_and_wrong_is_finite() -> None:
    assert error([[0, 1]], [0]) == 1
    assert nll([[0, 1]], [0]) == pytest.approx(126 * math.log(2))  # the smallest normal float32 is 2^-126
    assert brier([[0, 1]], [0]) == 2


def test_equal_probabilities_predict_the_first_class() -> None:
    assert error([[0.5, 0.5], [0.5, 0.5]], [0, 1]) == 0.5


def test_a_rounding_error_above_one_counts_as_one() -> None:
    assert nll([[1 + 1e-7, 0]], [0]) == 0
    assert brier([[1 + 1e-7, 0]], [0]) == 0


@pytest.mark.parametrize("score", [error, nll, brier])
@pytest.mark.parametrize(
    ("probs", "labels", "says"),
    [
        ([[2.0, -1.0]], [0], "between 0 and 1"),
        ([[math.nan, 1.0]], [0], "holds nan"),
        ([[0.5, 0.4]], [0], "sums to 0.9; .* softmax"),
        ([[0.5, 0.5002]], [0], "sums to 1.0002"),
        ([0.5, 0.5], [0], "2 axes"),
        (np.zeros((0, 3)), [], "at least one value"),
        (PROBS, [0], r"must be \(2,\)"),
        (PROBS, [0, 3], "holds 3; with 3 classes 0 … 2 exist"),
        (PROBS, [0, -1], "holds -1"),
        (PROBS, [0.0, 1.0], "integers"),
        (PROBS, [True, False], "integers"),
    ],
)
def test_nonsense_is_refused(score: Callable[..., float], probs: Any, labels: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        score(probs, labels)
