import math
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.recalibration.signals import member_signals
from tests.recalibration.simulated import logits_of, slow_signals

ROUNDING = 1e-12


@pytest.mark.parametrize(("members", "classes"), [(1, 2), (2, 3), (5, 10)])
def test_both_are_those_of_plain_loops(members: int, classes: int) -> None:
    logits = logits_of(np.random.default_rng(0), 30, members, classes)
    found = member_signals(logits)
    assert list(found) == ["entropy", "disagreement"]
    for image in range(30):
        entropy, disagreement = slow_signals(logits[:, image])
        assert found["entropy"][image] == pytest.approx(entropy, abs=ROUNDING)
        assert found["disagreement"][image] == pytest.approx(disagreement, abs=ROUNDING)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
def test_both_lie_between_0_and_1(scale: float) -> None:
    for signal in member_signals(scale * logits_of(np.random.default_rng(1), 400)).values():
        assert signal.shape == (400,)
        assert signal.min() >= 0
        assert signal.max() <= 1 + ROUNDING


def test_one_network_and_members_that_say_the_same_do_not_disagree() -> None:
    one = logits_of(np.random.default_rng(2), 200, members=1)
    of_one, of_three = member_signals(one), member_signals(one.repeat(3, axis=0))
    assert of_one["disagreement"] == pytest.approx(np.zeros(200), abs=ROUNDING)
    assert of_three["disagreement"] == pytest.approx(np.zeros(200), abs=ROUNDING)
    assert of_one["entropy"] == pytest.approx(of_three["entropy"])


def test_extremes() -> None:
    sure = 1e3 * np.eye(4)
    same, other = sure[[0]].repeat(2, axis=0), sure[[0, 1]]
    logits = np.stack([np.zeros((2, 4)), same, other], axis=1)
    found = member_signals(logits)
    assert found["entropy"] == pytest.approx([1, 0, 0], abs=ROUNDING), "uniform, sure, and each sure of another class"
    assert found["disagreement"] == pytest.approx([0, 0, math.log(2) / math.log(4)], abs=ROUNDING)
    assert member_signals(sure[:, None])["disagreement"] == pytest.approx([1.0]), "every member another class"


def test_half_precision_is_widened_first() -> None:
    logits = logits_of(np.random.default_rng(3), 20).astype(np.float16)
    for half, full in zip(member_signals(logits).values(), member_signals(logits.astype(float)).values(), strict=True):
        assert half.dtype == np.float64
        assert (half == full).all()


@pytest.mark.parametrize(
    ("logits", "says"),
    [
        (np.zeros((3, 4)), "3 axes"),
        (np.zeros((2, 0, 3)), "at least one value"),
        (np.full((1, 3, 2), math.nan), "holds nan; every value must be finite"),
    ],
)
def test_nonsense_is_refused(logits: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        member_signals(logits)
