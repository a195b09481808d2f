import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.metrics import disagreement, diversity, entropy_of_mean, mean_pairwise_kl, mutual_information
from counterpoint.recalibration.apply import member_signals


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


@pytest.mark.parametrize("block", [1, 7 * 3 * 5, 1_000_000])
def test_blocks_of_images_change_no_bit_of_the_kl(monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    """A block of one probability holds one image; 7 images of 3 members and 5 classes do not divide 100."""
    probs = np.random.default_rng(0).dirichlet([0.1] * 5, size=(3, 100))
    clipped = np.maximum(probs, np.finfo(np.float32).tiny)
    both = [
        ((clipped[i] - clipped[j]) * (np.log(clipped[i]) - np.log(clipped[j]))).sum(axis=1).mean()
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    monkeypatch.setattr(diversity, "_BLOCK", block)
    assert mean_pairwise_kl(probs) == np.mean(both) / 2


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


def test_entropy_and_mutual_information_by_hand() -> None:
    """Unsure together, unsure apart, sure together, and two sure members against each other."""
    first = [[0.5, 0.5], [0.75, 0.25], [1.0, 0.0], [1.0, 0.0]]
    second = [[0.5, 0.5], [0.25, 0.75], [1.0, 0.0], [0.0, 1.0]]
    half = math.log(2)
    quarter = -0.75 * math.log(0.75) - 0.25 * math.log(0.25)
    assert entropy_of_mean([first, second]) == pytest.approx([half, half, 0, half])
    assert mutual_information([first, second]) == pytest.approx([0, half - quarter, 0, half])
    assert entropy_of_mean([first]) == pytest.approx([half, quarter, 0, 0]), "one member has an entropy too"


@given(st.integers(2, 5), st.integers(1, 20), st.integers(0, 1000))
@settings(deadline=None)
def test_mutual_information_is_the_plain_loop_and_the_mean_kl_to_the_mean(members: int, images: int, seed: int) -> None:
    probs = np.random.default_rng(seed).dirichlet([0.5, 0.5, 0.5], size=(members, images))
    for n, found in enumerate(mutual_information(probs)):
        mean = [sum(probs[i, n, k] for i in range(members)) / members for k in range(3)]
        kl = [sum(p * math.log(p / q) for p, q in zip(probs[i, n], mean, strict=True) if p) for i in range(members)]
        assert found == pytest.approx(sum(kl) / members, abs=1e-12)


def test_mutual_information_is_the_disagreement_that_temperatures_follow() -> None:
    logits = np.random.default_rng(0).normal(0, 2, (4, 50, 6))
    probs = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
    assert mutual_information(probs) / math.log(6) == pytest.approx(member_signals(logits)["disagreement"], abs=1e-9)


def test_members_that_predict_the_same_tie_at_zero() -> None:
    probs = np.repeat(np.random.default_rng(0).dirichlet([1] * 10, size=(1, 200)), 3, axis=0)
    assert (mutual_information(probs) == 0).all()


def test_mutual_information_needs_two_members() -> None:
    with pytest.raises(InputError, match="one member"):
        mutual_information([[[0.5, 0.5]]])
