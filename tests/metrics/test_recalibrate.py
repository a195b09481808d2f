import math
from typing import Any, get_args

import numpy as np
import pytest
from scipy.special import log_softmax, softmax

from counterpoint.errors import InputError
from counterpoint.metrics import apply_temperature, cross_fitted_probabilities, ece, fit_temperature, nll
from counterpoint.metrics.recalibrate import Kind, cross_fit

KINDS: tuple[Kind, ...] = get_args(Kind)


def members(count: int, images: int, true_temperature: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Logits `true_temperature` times too large for their labels; the members differ by noise."""
    rng = np.random.default_rng(seed)
    logits_NK = 2 * rng.normal(size=(images, 4))
    labels = np.array([rng.choice(4, p=row) for row in softmax(logits_NK, axis=1)])
    noise_MNK = rng.normal(size=(count, images, 4)) if count > 1 else np.zeros((1, images, 4))
    return true_temperature * (logits_NK + 0.5 * noise_MNK), labels


def scaled_by_hand(logits_MNK: np.ndarray, temperatures: tuple[float, ...], kind: Kind) -> np.ndarray:
    if kind == "after":
        mean_NK = softmax(logits_MNK, axis=2).mean(axis=0)
        powers = mean_NK ** (1 / temperatures[0])
        return powers / powers.sum(axis=1, keepdims=True)
    each = temperatures * len(logits_MNK) if kind == "before" else temperatures
    return np.mean([softmax(logits_NK / t, axis=1) for logits_NK, t in zip(logits_MNK, each, strict=True)], axis=0)


@pytest.mark.parametrize("kind", KINDS)
def test_the_known_temperature_of_a_single_network_is_found(kind: Kind) -> None:
    logits, labels = members(1, 20_000, true_temperature=2.5)
    assert fit_temperature(logits, labels, kind) == pytest.approx((2.5,), rel=0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("true_temperature", [0.4, 1.0, 3.0])
def test_no_temperature_on_a_fine_grid_does_better(kind: Kind, true_temperature: float) -> None:
    logits, labels = members(3, 400, true_temperature)
    found = fit_temperature(logits, labels, kind)
    if kind == "per-member":
        assert found == tuple(fit_temperature(member_NK[None], labels, "before")[0] for member_NK in logits)
        return
    best = nll(apply_temperature(logits, found, kind), labels)
    on_grid = [nll(scaled_by_hand(logits, (t,), kind), labels) for t in np.geomspace(0.05, 20, 300)]
    assert best <= min(on_grid) + 1e-9


@pytest.mark.parametrize("kind", KINDS)
def test_apply_is_done_by_hand(kind: Kind) -> None:
    logits, _ = members(3, 50, 1.0)
    temperatures = (0.5, 2.0, 1.3) if kind == "per-member" else (1.7,)
    probs = apply_temperature(logits, temperatures, kind)
    assert probs == pytest.approx(scaled_by_hand(logits, temperatures, kind))


@pytest.mark.parametrize("kind", KINDS)
def test_temperature_1_changes_nothing(kind: Kind) -> None:
    logits, _ = members(3, 50, 1.0)
    ones = (1.0,) * (3 if kind == "per-member" else 1)
    assert apply_temperature(logits, ones, kind) == pytest.approx(softmax(logits, axis=2).mean(axis=0))


@pytest.mark.parametrize("kind", KINDS)
def test_held_out_images_are_better_calibrated(kind: Kind) -> None:
    logits, labels = members(4, 6000, true_temperature=3.0)
    fitted = fit_temperature(logits[:, :3000], labels[:3000], kind)
    ones = (1.0,) * len(fitted)
    before, after = (apply_temperature(logits[:, 3000:], t, kind) for t in (ones, fitted))
    assert nll(after, labels[3000:]) < nll(before, labels[3000:]) - 0.1
    eces = [ece(probs.max(1), probs.argmax(1) == labels[3000:]) for probs in (before, after)]
    assert eces[1] < 0.6 * eces[0]


def test_float16_and_large_logits() -> None:
    logits, labels = members(2, 300, 1.0)
    assert fit_temperature(logits.astype(np.float16), labels, "before") == pytest.approx(
        fit_temperature(logits, labels, "before"), rel=1e-2
    )
    assert fit_temperature(4 * logits, labels, "before") == pytest.approx(
        [4 * t for t in fit_temperature(logits, labels, "before")], rel=1e-4
    )
    assert math.isfinite(nll(apply_temperature(1e4 * logits, (0.05,), "after"), labels))


@pytest.mark.parametrize("kind", KINDS)
def test_useless_logits_get_the_highest_temperature_and_perfect_ones_none(kind: Kind) -> None:
    logits = np.eye(4)[None].repeat(2, axis=0)
    right, wrong = np.arange(4), (np.arange(4) + 1) % 4
    assert fit_temperature(logits, wrong, kind) == pytest.approx((20.0,) * (1 + (kind == "per-member")))
    with pytest.raises(
        InputError, match=r"these 4 images .* all the way to 0\.05\. Is every one of them predicted right"
    ):
        fit_temperature(logits, right, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_cross_fitting_scales_each_half_with_the_others_temperature(kind: Kind) -> None:
    logits, labels = members(2, 101, 2.0)
    probs = cross_fitted_probabilities(logits, labels, kind, seed=5)
    order = np.random.default_rng(5).permutation(101)
    first, second = order[:51], order[51:]
    crossed = cross_fit(logits, labels, kind, seed=5)
    for fitted, applied, (images, found) in zip((first, second), (second, first), crossed, strict=True):
        temperatures = fit_temperature(logits[:, fitted], labels[fitted], kind)
        assert (images == applied).all()
        assert found == temperatures
        assert (probs[applied] == apply_temperature(logits[:, applied], temperatures, kind)).all()
    assert (probs != cross_fitted_probabilities(logits, labels, kind, seed=6)).any()


def test_an_image_has_no_say_in_its_own_temperature() -> None:
    logits, labels = members(2, 60, 2.0)
    probs = cross_fitted_probabilities(logits, labels, "before", seed=0)
    for image in range(5):
        changed = labels.copy()
        changed[image] = (changed[image] + 1) % 4
        assert (cross_fitted_probabilities(logits, changed, "before", seed=0)[image] == probs[image]).all()


LOGITS = log_softmax(np.arange(12.0).reshape(2, 3, 2), axis=2)


@pytest.mark.parametrize("function", [fit_temperature, cross_fit, cross_fitted_probabilities])
@pytest.mark.parametrize(
    ("logits", "labels", "says"),
    [
        (LOGITS[0], [0, 1, 0], "3 axes"),
        (np.zeros((2, 0, 3)), [], "at least one value"),
        (np.full((1, 3, 2), math.nan), [0, 1, 0], "holds nan; every value must be finite"),
        (np.full((1, 3, 2), -math.inf), [0, 1, 0], "holds -inf"),
        (LOGITS, [0, 1], r"must be \(3,\)"),
        (LOGITS, [0, 1, 2], "holds 2; with 2 classes"),
        (LOGITS, [0.0, 1.0, 0.0], "integers"),
    ],
)
def test_nonsense_is_refused(function: Any, logits: Any, labels: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        function(logits, labels, "before")


def test_wrong_kinds_and_temperatures_are_named() -> None:
    with pytest.raises(InputError, match="did you mean 'per-member'"):
        fit_temperature(LOGITS, [0, 1, 0], "per_member")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="1 temperatures were given; kind 'per-member' needs 2"):
        apply_temperature(LOGITS, (1.0,), "per-member")
    with pytest.raises(InputError, match="2 temperatures were given; kind 'after' needs 1"):
        apply_temperature(LOGITS, (1.0, 1.0), "after")
    with pytest.raises(InputError, match="above 0"):
        apply_temperature(LOGITS, (0.0,), "before")
    with pytest.raises(InputError, match="at least two"):
        cross_fitted_probabilities(LOGITS[:, :1], [0], "before")
