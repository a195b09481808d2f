import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from counterpoint.errors import InputError
from counterpoint.recalibration.apply import Labelled, apply
from counterpoint.recalibration.families import Family, families
from counterpoint.recalibration.fit import HIGHEST, LOWEST, STEEPEST, FitSet, _objective, _Terms, fit
from counterpoint.records.recalibrated import Recalibration
from tests.recalibration.simulated import (
    alone,
    errors,
    labels_of,
    logits_of,
    parameters,
    planted,
    simulated,
    slow_nll,
    values,
)

FAMILIES = {family.name: family for family in families(3, shifted=True)}
TRUTHS = {
    "before": planted("before", math.log(2.5)),
    "after": planted("after", math.log(0.6)),
    "by entropy": planted("before", -0.3, entropy=1.5),
    "by disagreement": planted("before", 0.2, disagreement=3.0),
    "by both": planted("before", -0.2, entropy=1.0, disagreement=2.5),
}


def nll(found: Recalibration, images: Labelled) -> float:
    probs = apply(found, images.logits_MNK).ensemble_NK
    return float(-np.log(probs[np.arange(len(images)), images.labels_N]).mean())


@pytest.mark.parametrize("name", TRUTHS)
@pytest.mark.parametrize("seed", [0, 2])
def test_planted_parameters_are_recovered(name: str, seed: int) -> None:
    found = fit(FAMILIES[name], alone(simulated(TRUTHS[name], 4000, seed)))
    assert (found.acts, found.fitted_on) == (FAMILIES[name].acts, FAMILIES[name].images)
    assert [one.signal for one in found.slopes] == [one.signal for one in TRUTHS[name].slopes]
    assert len(values(found)) == FAMILIES[name].parameters(3)
    for parameter, true in zip(parameters(found), values(TRUTHS[name]), strict=True):
        assert parameter.standard_error is not None
        assert 0 < parameter.standard_error < 0.5
        assert abs(parameter.value - true) < 3 * parameter.standard_error


@pytest.mark.parametrize("seed", [0, 1])
def test_every_members_own_temperature_is_recovered(seed: int) -> None:
    """Each is fitted to its member alone, and so these say the same but for their scale."""
    truth = planted("per-member", math.log(0.5), 0.0, math.log(4))
    rng = np.random.default_rng(seed)
    logits = logits_of(rng, 4000, members=1) * np.array([0.5, 1, 4])[:, None, None]
    images = Labelled(logits, labels_of(rng, truth, logits))
    found = fit(FAMILIES["per-member"], alone(images))
    assert found.slopes == ()
    for member, (parameter, true) in enumerate(zip(found.log_temperatures, values(truth), strict=True)):
        assert parameter.standard_error is not None
        assert abs(parameter.value - true) < 3 * parameter.standard_error
        own = fit(FAMILIES["before"], alone(Labelled(logits[member : member + 1], images.labels_N)))
        assert (parameter,) == own.log_temperatures


def spread(name: str, draw: Any, simulations: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Over simulations: the parameters' standard deviations, and their mean standard errors."""
    fits = [fit(FAMILIES[name], draw(np.random.default_rng(seed))) for seed in range(simulations)]
    return np.std([values(one) for one in fits], axis=0), np.array([errors(one) for one in fits], float).mean(axis=0)


def is_close(spread_P: np.ndarray, errors_P: np.ndarray) -> bool:
    ratio_P = errors_P / spread_P
    return bool(((ratio_P > 0.7) & (ratio_P < 1.4)).all())


@pytest.mark.parametrize("name", ["before", "after", "per-member", "by both"])
def test_the_standard_error_is_the_spread_over_simulations(name: str) -> None:
    # So steep that no small simulation holds a slope at 0.
    truth = {
        "per-member": planted("per-member", 0.3, 0.6, 0.9),
        "by both": planted("before", -0.5, entropy=2.0, disagreement=6.0),
    }.get(name, TRUTHS.get(name, planted("before", 0.0)))

    def draw(rng: np.random.Generator) -> list[FitSet]:
        logits = logits_of(rng, 400)
        return alone(Labelled(logits, labels_of(rng, truth, logits)))

    assert is_close(*spread(name, draw))


def test_an_image_that_is_in_several_sets_counts_once_in_the_standard_error() -> None:
    """The sets show nearly the same: as independent images they would give half the error."""

    def draw(rng: np.random.Generator) -> list[FitSet]:
        logits = logits_of(rng, 150)
        labels = labels_of(rng, TRUTHS["before"], logits)
        seen = [Labelled(logits + 0.1 * rng.normal(size=logits.shape), labels) for _ in range(4)]
        return [FitSet(one, 0.25) for one in seen]

    assert is_close(*spread("before, shifted", draw))


def test_the_standard_error_holds_for_sets_of_different_sizes_and_needs() -> None:
    """Few images that need a high temperature beside many that need a low one."""

    def draw(rng: np.random.Generator) -> list[FitSet]:
        sets = []
        for truth, images in ((planted("before", math.log(0.4)), 300), (planted("before", math.log(6)), 60)):
            logits = logits_of(rng, images)
            sets.append(FitSet(Labelled(logits, labels_of(rng, truth, logits)), 0.5))
        return sets

    assert is_close(*spread("before, shifted", draw))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_set_given_twice_with_half_the_weight_is_that_set(name: str) -> None:
    images = simulated(TRUTHS["by both"], 300)
    once = fit(FAMILIES[name], alone(images))
    twice = fit(FAMILIES[name], [FitSet(images, 0.5), FitSet(images, 0.5)])
    assert values(twice) == pytest.approx(values(once), abs=1e-5)
    assert errors(twice) == pytest.approx(errors(once), rel=1e-4)


@pytest.mark.parametrize("name", ["before", "by both"])
def test_weights_say_how_much_a_set_counts(name: str) -> None:
    first, second = simulated(TRUTHS[name], 200, seed=1), simulated(TRUTHS["after"], 200, seed=2)
    joined = Labelled(
        np.concatenate([first.logits_MNK, second.logits_MNK], axis=1), np.concatenate([first.labels_N, second.labels_N])
    )
    equal = fit(FAMILIES[name], [FitSet(first, 0.5), FitSet(second, 0.5)])
    assert values(equal) == pytest.approx(values(fit(FAMILIES[name], alone(joined))), abs=1e-4)
    unequal, tenfold = (fit(FAMILIES[name], [FitSet(first, 0.8 * k), FitSet(second, 0.2 * k)]) for k in (1, 10))
    assert values(tenfold) == pytest.approx(values(unequal), abs=1e-4)
    assert errors(tenfold) == pytest.approx(errors(unequal), rel=1e-3)
    assert values(unequal) != pytest.approx(values(equal), abs=1e-2)
    # A set's weight is that of all its images together, however many there are.
    short = Labelled(second.logits_MNK[:, :50], second.labels_N[:50])
    repeated = Labelled(short.logits_MNK.repeat(4, axis=1), short.labels_N.repeat(4))
    few, many = (fit(FAMILIES[name], [FitSet(first, 0.5), FitSet(one, 0.5)]) for one in (short, repeated))
    assert values(few) == pytest.approx(values(many), abs=1e-4)


@pytest.mark.parametrize("place", [0, 1])
def test_a_set_of_weight_0_is_not_looked_at(place: int) -> None:
    images = simulated(TRUTHS["by both"], 200)
    unread = [FitSet(Labelled(np.full((1, 5, 2), math.nan), np.array([9])), 0.0)]
    sets = unread + alone(images) if place == 0 else alone(images) + unread
    for family in FAMILIES.values():
        assert fit(family, sets) == fit(family, alone(images))


@pytest.mark.parametrize("name", ["before", "after", "per-member"])
@pytest.mark.parametrize("true_temperature", [0.4, 1.0, 3.0])
def test_no_temperature_on_a_fine_grid_does_better(name: str, true_temperature: float) -> None:
    images = simulated(planted("before", math.log(true_temperature)), 300)
    found = fit(FAMILIES[name], alone(images))
    grid = np.linspace(math.log(0.05), math.log(20), 400)
    if name == "per-member":
        for member, value in enumerate(values(found)):
            own = Labelled(images.logits_MNK[member : member + 1], images.labels_N)
            best = nll(planted("before", value), own)
            assert best <= min(nll(planted("before", one), own) for one in grid) + 1e-9
    else:
        assert nll(found, images) <= min(nll(planted(found.acts, one), images) for one in grid) + 1e-9


@pytest.mark.parametrize("seed", [2200, 3931])
def test_the_lowest_of_two_valleys_is_found(seed: int) -> None:
    """A few images whose NLL has two valleys, the first time with the lower one to the right, then to the left."""
    rng = np.random.default_rng(seed)
    labels = np.arange(8) % 2
    scale_M11 = np.exp(rng.uniform(-3, 4, size=(2, 1, 1)))
    images = Labelled(scale_M11 * (rng.normal(size=(2, 8, 2)) + rng.uniform(0, 1) * np.eye(2)[labels]), labels)
    grid = np.linspace(math.log(0.05), math.log(20), 600)
    losses = [nll(planted("before", one), images) for one in grid]
    valleys = [grid[i] for i in range(1, 599) if losses[i - 1] > losses[i] < losses[i + 1]]
    assert len(valleys) == 2
    lowest = grid[int(np.argmin(losses))]
    assert lowest == valleys[1 if seed == 2200 else 0]
    assert values(fit(FAMILIES["before"], alone(images)))[0] == pytest.approx(lowest, abs=0.02)


@pytest.mark.parametrize(
    ("name", "count", "seed", "members", "classes", "gained"),
    [
        ("by entropy", 20, 114, 2, 2, 0.011),
        ("by disagreement", 12, 18, 3, 4, 0.028),
        ("by disagreement", 20, 38, 2, 3, 0.10),
        ("by both", 20, 46, 2, 3, 0.055),
    ],
)
def test_of_few_images_the_lowest_of_several_minima_is_found(
    name: str, count: int, seed: int, members: int, classes: int, gained: float
) -> None:
    """A search that begins with slopes of 0 ends in a minimum that is higher by what is gained."""
    images = simulated(TRUTHS[name], count, seed, members=members, classes=classes)
    found = fit(FAMILIES[name], alone(images))
    signals = [one.signal for one in found.slopes]
    slopes = np.concatenate([[0], np.geomspace(0.2, 50, 59 if len(signals) == 1 else 10)])
    grid = itertools.product(np.linspace(math.log(0.05), math.log(20), 40), *[slopes] * len(signals))
    slow = [nll(planted("before", first, **dict(zip(signals, others, strict=True))), images) for first, *others in grid]
    assert nll(found, images) <= min(slow) + 1e-9
    terms = [_Terms.of(FAMILIES[name], one) for one in alone(images)]
    bounds = [(math.log(0.05), math.log(20)), *[(0, 50)] * len(signals)]
    flat = [values(fit(FAMILIES["before"], alone(images)))[0], *[0.0] * len(signals)]
    from_flat = minimize(_objective, flat, (terms,), "L-BFGS-B", jac=True, bounds=bounds).fun
    assert from_flat - nll(found, images) == pytest.approx(gained, rel=0.1)


@pytest.mark.parametrize("name", ["by entropy", "by disagreement", "by both"])
def test_of_many_images_the_search_from_slopes_of_0_is_kept(name: str) -> None:
    """They have one minimum. A second search would only add its own rounding."""
    images = simulated(TRUTHS[name], 1000)
    terms = [_Terms.of(FAMILIES[name], one) for one in alone(images)]
    flat = [np.array([first, *[0.0] * len(FAMILIES[name].signals)]) for first in np.linspace(LOWEST, HIGHEST, 15)]
    start = min(flat, key=lambda theta: _objective(theta, terms)[0])
    bounds = [(LOWEST, HIGHEST), *[(0.0, STEEPEST)] * len(FAMILIES[name].signals)]
    options = {"ftol": 1e-14, "gtol": 1e-9}
    searched = minimize(_objective, start, (terms,), "L-BFGS-B", jac=True, bounds=bounds, options=options)
    assert values(fit(FAMILIES[name], alone(images))) == searched.x.tolist()


@pytest.mark.parametrize("seed", [0, 1])
def test_a_slow_search_in_a_plain_loop_finds_the_same(seed: int) -> None:
    truth = planted("before", -0.5, entropy=2.0, disagreement=5.0)
    sets = [FitSet(simulated(truth, 40, seed, members=2, classes=3), 0.7)]
    sets.append(FitSet(simulated(truth, 25, seed + 10, members=2, classes=3), 0.3))

    def slow_loss(theta: Sequence[float]) -> float:
        at = planted("before", theta[0], entropy=theta[1], disagreement=theta[2])
        return sum(one.weight * sum(slow_nll(at, one.images)) / len(one.images) for one in sets)

    found = values(fit(FAMILIES["by both"], sets))
    bounds = [(math.log(0.05), math.log(20)), (0, 50), (0, 50)]
    slow = minimize(
        slow_loss, [0.0, 1.0, 1.0], method="Nelder-Mead", bounds=bounds, options={"xatol": 1e-5, "fatol": 1e-11}
    )
    assert slow.success
    assert slow_loss(found) <= slow.fun + 1e-9
    assert found == pytest.approx(slow.x, abs=2e-3)


@pytest.mark.parametrize("name", ["before", "after", "by both"])
def test_the_derivatives_are_those_of_finite_differences(name: str) -> None:
    """Of the private objective: a wrong derivative would only make the search slow, and the standard error wrong."""
    family = FAMILIES[name]
    sets = [FitSet(simulated(TRUTHS[name], count, seed=count), weight) for count, weight in ((30, 0.6), (20, 0.4))]
    terms = [_Terms.of(family, one) for one in sets]
    rng = np.random.default_rng(0)
    for _ in range(5):
        theta = rng.uniform(0.1, 1.5, family.parameters(3))
        for i, derivative in enumerate(_objective(theta, terms)[1]):
            step = np.eye(len(theta))[i] * 1e-5
            difference = (_objective(theta + step, terms)[0] - _objective(theta - step, terms)[0]) / 2e-5
            assert derivative == pytest.approx(difference, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "truth"),
    [
        ("by entropy", planted("before", 1.5, entropy=-3.0)),
        ("by disagreement", planted("before", 1.0, disagreement=-4.0)),
    ],
)
def test_a_slope_is_never_negative(name: str, truth: Recalibration) -> None:
    images = simulated(truth, 2000)
    found = fit(FAMILIES[name], alone(images))
    (slope,) = found.slopes
    assert slope.slope.value == 0
    assert slope.slope.standard_error is None
    (flat,) = fit(FAMILIES["before"], alone(images)).log_temperatures
    assert found.log_temperatures[0].value == pytest.approx(flat.value, abs=1e-4)
    assert found.log_temperatures[0].standard_error == pytest.approx(flat.standard_error, rel=1e-3)


def test_one_slope_can_be_held_while_the_other_is_free() -> None:
    images = simulated(planted("before", 0.5, entropy=-3.0, disagreement=6.0), 3000)
    found = fit(FAMILIES["by both"], alone(images))
    assert values(found)[1] == 0
    assert [error is None for error in errors(found)] == [False, True, False]
    own = fit(FAMILIES["by disagreement"], alone(images))
    assert [values(found)[i] for i in (0, 2)] == pytest.approx(values(own), abs=1e-3)
    assert [errors(found)[i] for i in (0, 2)] == pytest.approx(errors(own), rel=1e-2)


def test_members_that_say_the_same_have_no_slope_of_disagreement() -> None:
    images = simulated(TRUTHS["before"], 300, members=1)
    same = Labelled(images.logits_MNK.repeat(3, axis=0), images.labels_N)
    found = fit(FAMILIES["by disagreement"], alone(same))
    assert (values(found)[1], errors(found)[1]) == (0, None)
    assert found.log_temperatures[0].value == pytest.approx(values(fit(FAMILIES["before"], alone(images)))[0], abs=1e-5)


def test_half_precision_is_widened_first() -> None:
    images = simulated(TRUTHS["by both"], 200)
    half: Any = images.logits_MNK.astype(np.float16)
    for family in FAMILIES.values():
        assert fit(family, alone(replace(images, logits_MNK=half))) == fit(
            family, alone(replace(images, logits_MNK=half.astype(np.float64)))
        )


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_far_from_0_are_like_others(name: str) -> None:
    images = simulated(TRUTHS["by both"], 200)
    far = replace(images, logits_MNK=images.logits_MNK + 1e4)
    found, expected = (fit(FAMILIES[name], alone(one)) for one in (far, images))
    assert values(found) == pytest.approx(values(expected), abs=1e-4)
    assert errors(found) == pytest.approx(errors(expected), rel=1e-3)


@pytest.mark.parametrize("name", ["before", "per-member"])
def test_larger_logits_need_a_temperature_so_much_higher(name: str) -> None:
    images = simulated(TRUTHS["before"], 300)
    larger = replace(images, logits_MNK=4 * images.logits_MNK)
    found, expected = (fit(FAMILIES[name], alone(one)) for one in (larger, images))
    assert values(found) == pytest.approx([value + math.log(4) for value in values(expected)], abs=1e-5)
    assert errors(found) == pytest.approx(errors(expected), rel=1e-3)


def test_held_out_images_are_better_calibrated() -> None:
    train, test = (simulated(TRUTHS["by both"], 1500, seed) for seed in (1, 2))
    found = {name: nll(fit(FAMILIES[name], alone(train)), test) for name in ("before", "by both")}
    assert found["before"] < nll(planted("before", 0.0), test)
    assert found["by both"] < found["before"] - 0.01
    assert found["by both"] == pytest.approx(nll(TRUTHS["by both"], test), abs=0.01)


LOGITS = np.eye(4)[None].repeat(2, axis=0)


@pytest.mark.parametrize("name", FAMILIES)
def test_images_that_determine_no_temperature_are_refused(name: str) -> None:
    right, wrong = np.arange(4), (np.arange(4) + 1) % 4
    with pytest.raises(
        InputError,
        match=r"^these 4 images .* all the way to 0\.05, the lowest that is tried\. Perhaps all of them",
    ):
        fit(FAMILIES[name], alone(Labelled(LOGITS, right)))
    with pytest.raises(
        InputError,
        match=r"^these 4 images .* all the way to 20, the highest that is tried\. The predictions say nothing about",
    ):
        fit(FAMILIES[name], alone(Labelled(LOGITS, wrong)))


def test_a_slope_that_no_image_limits_is_held_at_the_steepest() -> None:
    """Sure members that are all right, and unsure ones that know nothing."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 4, 100)
    sure = Labelled(12 * np.eye(4)[labels] + rng.normal(size=(3, 100, 4)), labels)
    useless = Labelled(4 * rng.normal(size=(3, 100, 4)), labels)
    found = fit(FAMILIES["by entropy"], [FitSet(sure, 0.5), FitSet(useless, 0.5)])
    assert (values(found)[1], errors(found)[1]) == (50, None)
    assert errors(found)[0] is not None


def test_one_member_that_determines_none_refuses_the_others() -> None:
    images = simulated(TRUTHS["before"], 200)
    right = images.logits_MNK.copy()
    right[1] = np.eye(4)[images.labels_N]
    with pytest.raises(InputError, match=r"^these 200 images .* all the way to 0\.05"):
        fit(FAMILIES["per-member"], alone(replace(images, logits_MNK=right)))


@pytest.mark.parametrize("name", ["by disagreement", "by both"])
def test_one_network_has_no_disagreement_to_fit(name: str) -> None:
    with pytest.raises(InputError, match=rf"^'{name}' needs the disagreement between members, and there is only one"):
        fit(FAMILIES[name], alone(simulated(TRUTHS["before"], 50, members=1)))
    of_one = fit(FAMILIES["by entropy"], alone(simulated(TRUTHS["by entropy"], 500, members=1)))
    assert len(values(of_one)) == 2


NONSENSE = np.arange(12.0).reshape(2, 3, 2)


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize(
    ("logits", "labels", "says"),
    [
        (NONSENSE[0], [0, 1, 0], "3 axes"),
        (np.zeros((2, 0, 3)), [], "at least one value"),
        (np.full((1, 3, 2), math.nan), [0, 1, 0], "holds nan; every value must be finite"),
        (np.full((1, 3, 2), -math.inf), [0, 1, 0], "holds -inf"),
        (NONSENSE, [0, 1], r"must be \(3,\)"),
        (NONSENSE, [0, 1, 2], "holds 2; with 2 classes"),
        (NONSENSE, [0, -1, 1], "holds -1; with 2 classes"),
        (NONSENSE, [0.0, 1.0, 0.0], "integers"),
    ],
)
def test_nonsense_is_refused(logits: Any, labels: Any, says: str, place: int) -> None:
    sets = [FitSet(simulated(TRUTHS["before"], 20, members=2, classes=2), 0.5)]
    sets.insert(place, FitSet(Labelled(logits, np.array(labels)), 0.5))
    with pytest.raises(InputError, match=says):
        fit(Family("before", "before", "clean"), sets)
