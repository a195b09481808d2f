import math
from typing import Any

import numpy as np
import pytest
from scipy.special import softmax

from counterpoint.errors import InputError
from counterpoint.recalibration.apply import apply, image_temperatures, member_signals
from counterpoint.records.recalibrated import Recalibration
from tests.recalibration.simulated import logits_of, planted, slow_apply, slow_signals, slow_softmax

ROUNDING = 1e-12
LOGITS = logits_of(np.random.default_rng(0), 60)
CASES = {
    "before": planted("before", math.log(1.7)),
    "after": planted("after", math.log(0.6)),
    "per-member": planted("per-member", math.log(0.5), math.log(2), 0.3),
    "by entropy": planted("before", -0.2, entropy=1.5),
    "by disagreement": planted("before", 0.1, disagreement=4.0),
    "by both": planted("before", -0.3, entropy=0.7, disagreement=2.5),
}


@pytest.mark.parametrize("name", CASES)
def test_probabilities_are_those_of_plain_loops(name: str) -> None:
    found = apply(CASES[name], LOGITS).ensemble_NK
    assert found == pytest.approx(np.array(slow_apply(CASES[name], LOGITS)), abs=1e-12)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_they_are_probabilities(name: str, scale: float) -> None:
    found = apply(CASES[name], scale * LOGITS)
    for probs in (found.ensemble_NK, *(() if found.members_MNK is None else found.members_MNK)):
        assert probs.min() >= 0
        assert probs.max() <= 1 + 1e-12
        assert probs.sum(axis=1) == pytest.approx(np.ones(60))


def test_members_are_there_where_they_are_scaled() -> None:
    assert apply(CASES["after"], LOGITS).members_MNK is None
    for name, temperatures in {"before": (1.7, 1.7, 1.7), "per-member": (0.5, 2, math.exp(0.3))}.items():
        found = apply(CASES[name], LOGITS)
        assert found.members_MNK is not None
        for member, temperature in enumerate(temperatures):
            expected = [slow_softmax(logits, temperature) for logits in LOGITS[member]]
            assert found.members_MNK[member] == pytest.approx(np.array(expected))
        assert found.ensemble_NK == pytest.approx(found.members_MNK.mean(axis=0))


@pytest.mark.parametrize("ones", [planted("before", 0), planted("after", 0), planted("per-member", 0, 0, 0)])
def test_temperature_1_changes_nothing(ones: Recalibration) -> None:
    assert apply(ones, LOGITS).ensemble_NK == pytest.approx(softmax(LOGITS, axis=2).mean(axis=0))


def test_slopes_of_0_change_nothing() -> None:
    flat = planted("before", math.log(1.7), entropy=0, disagreement=0)
    assert (apply(flat, LOGITS).ensemble_NK == apply(CASES["before"], LOGITS).ensemble_NK).all()


@pytest.mark.parametrize("log_temperature", [math.log(0.05), -0.5, 1.0, math.log(20)])
def test_after_never_changes_a_predicted_class_and_before_can(log_temperature: float) -> None:
    logits = logits_of(np.random.default_rng(1), 3000)
    predicted = softmax(logits, axis=2).mean(axis=0).argmax(axis=1)
    after, before = (
        apply(planted(acts, log_temperature), logits).ensemble_NK.argmax(axis=1) for acts in ("after", "before")
    )
    assert (after == predicted).all()
    assert (before != predicted).any()


def test_the_temperature_of_an_image_follows_its_signals() -> None:
    signals = member_signals(LOGITS)
    found = image_temperatures(CASES["by both"], LOGITS)
    assert found == pytest.approx(np.exp(-0.3 + 0.7 * signals["entropy"] + 2.5 * signals["disagreement"])[None])
    assert image_temperatures(CASES["per-member"], LOGITS) == pytest.approx(
        np.array([[0.5], [2], [math.exp(0.3)]]).repeat(60, axis=1)
    )


def test_the_signals_are_those_of_the_unscaled_logits() -> None:
    """One image's temperature does not depend on the images beside it, nor on the log temperature."""
    whole, part = (image_temperatures(CASES["by both"], logits) for logits in (LOGITS, LOGITS[:, 10:20]))
    assert whole[:, 10:20] == pytest.approx(part)
    hotter = image_temperatures(planted("before", 0.7, entropy=0.7, disagreement=2.5), LOGITS)
    assert hotter == pytest.approx(math.e * whole)


def test_half_precision_is_widened_first() -> None:
    half = LOGITS.astype(np.float16)
    for case in CASES.values():
        assert (apply(case, half).ensemble_NK == apply(case, half.astype(np.float64)).ensemble_NK).all()


def test_a_wrong_number_of_temperatures_and_nonsense_are_refused() -> None:
    with pytest.raises(InputError, match="the recalibration has 3 temperatures, and this ensemble needs 2"):
        apply(CASES["per-member"], LOGITS[:2])
    with pytest.raises(InputError, match="the recalibration has 1 temperatures, and this ensemble needs 3"):
        apply(planted("per-member", 0.0), LOGITS)
    with pytest.raises(InputError, match="the recalibration has 2 temperatures, and this ensemble needs 1"):
        apply(planted("before", 0.0, 0.0), LOGITS)
    with pytest.raises(InputError, match="3 axes"):
        apply(CASES["before"], LOGITS[0])
    with pytest.raises(InputError, match="holds nan"):
        apply(CASES["before"], np.full((1, 3, 2), math.nan))


def test_signals_that_a_caller_has_are_taken() -> None:
    alone = apply(CASES["by both"], LOGITS)
    assert (apply(CASES["by both"], LOGITS, member_signals(LOGITS)).ensemble_NK == alone.ensemble_NK).all()
    calm = {name: np.zeros_like(values) for name, values in member_signals(LOGITS).items()}
    assert (apply(CASES["by both"], LOGITS, calm).ensemble_NK != alone.ensemble_NK).any()


@pytest.mark.parametrize(("members", "classes"), [(1, 2), (2, 3), (5, 10)])
def test_signals_are_those_of_plain_loops(members: int, classes: int) -> None:
    logits = logits_of(np.random.default_rng(0), 30, members, classes)
    found = member_signals(logits)
    assert list(found) == ["entropy", "disagreement"]
    for image in range(30):
        entropy, disagreement = slow_signals(logits[:, image])
        assert found["entropy"][image] == pytest.approx(entropy, abs=ROUNDING)
        assert found["disagreement"][image] == pytest.approx(disagreement, abs=ROUNDING)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 30.0, 1e4])
def test_signals_lie_between_0_and_1(scale: float) -> None:
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


def test_signals_of_extremes() -> None:
    sure = 1e3 * np.eye(4)
    same, other = sure[[0]].repeat(2, axis=0), sure[[0, 1]]
    logits = np.stack([np.zeros((2, 4)), same, other], axis=1)
    found = member_signals(logits)
    assert found["entropy"] == pytest.approx([1, 0, 0], abs=ROUNDING), "uniform, sure, and each sure of another class"
    assert found["disagreement"] == pytest.approx([0, 0, math.log(2) / math.log(4)], abs=ROUNDING)
    assert member_signals(sure[:, None])["disagreement"] == pytest.approx([1.0]), "every member another class"


def test_for_signals_half_precision_is_widened_first() -> None:
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
def test_signals_of_nonsense_are_refused(logits: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        member_signals(logits)
