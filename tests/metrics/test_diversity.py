import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.metrics import disagreement


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


def test_one_member_has_nobody_to_disagree_with() -> None:
    with pytest.raises(InputError, match="at least two"):
        disagreement(one_hot([[0, 1]]))


def test_logits_are_refused() -> None:
    with pytest.raises(InputError, match="softmax"):
        disagreement(one_hot([[0, 1], [1, 1]]) / 2)
