import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.metrics import disagreement, mean_pairwise_kl


def one_hot(predicted_MN: list[list[int]], classes: int = 3) -> np.ndarray:
    return np.eye(classes)[np.array(predicted_MN)]


def test_by_hand() -> None:
    """Members 1 and 2 differ on one image of four, 1 and 3 on two, 2 and 3 on three."""
    probs = one_hot([[0, 1, 2, 0], [0, 1, 2, 1], [1, 0, 2, 0]])
    assert disagreement(probs) == pytest.approx((1 / 4 + 2 / 4 + 3 / 4) / 3)


def test_identical_members_never_disagree() -> None:
    assert disagreement(one_hot([[0, 1, 2]] * 4)) == 0


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 1000))
@settings(deadline=None)
def test_plain_loop(members: int, images: int, seed: int) -> None:
    probs = np.random.default_rng(seed).dirichlet([1, 1, 1], size=(members, images))
    differ = pairs = 0
    for i in range(members):
        for j in range(members):
            if i != j:
                differ += sum(probs[i, n].argmax() != probs[j, n].argmax() for n in range(images))
                pairs += images
    assert disagreement(probs) == pytest.approx(differ / pairs)


def test_kl_by_hand() -> None:
    one_way = 0.5 * math.log(0.5 / 0.25) + 0.5 * math.log(0.5 / 0.75)
    other_way = 0.25 * math.log(0.25 / 0.5) + 0.75 * math.log(0.75 / 0.5)
    assert mean_pairwise_kl([[[0.5, 0.5]], [[0.25, 0.75]]]) == pytest.approx((one_way + other_way) / 2)


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 1000))
@settings(deadline=None)
def test_kl_is_the_plain_loop(members: int, images: int, seed: int) -> None:
    probs = np.random.default_rng(seed).dirichlet([0.5, 0.5, 0.5], size=(members, images))
    total = pairs = 0.0
    for i in range(members):
        for j in range(members):
            if i != j:
                for p, q in zip(probs[i].tolist(), probs[j].tolist(), strict=True):
                    total += sum(a * math.log(max(a, 2.0**-126) / max(b, 2.0**-126)) for a, b in zip(p, q, strict=True))
                    pairs += 1
    assert mean_pairwise_kl(probs) == pytest.approx(total / pairs)


def test_kl_of_sure_members_is_finite_and_of_equal_ones_zero() -> None:
    assert mean_pairwise_kl(one_hot([[0], [1]])) == pytest.approx(126 * math.log(2))  # as in `nll`
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=50)
    assert mean_pairwise_kl([probs] * 3) == 0


def test_one_member_has_nobody_to_compare_with() -> None:
    for metric in (disagreement, mean_pairwise_kl):
        with pytest.raises(InputError, match="at least two"):
            metric(one_hot([[0, 1]]))


def test_logits_are_refused() -> None:
    for metric in (disagreement, mean_pairwise_kl):
        with pytest.raises(InputError, match="softmax"):
            metric(one_hot([[0, 1], [1, 1]]) / 2)
