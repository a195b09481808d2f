import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.metrics import mean_difference
from counterpoint.recalibration.apply import Labelled, apply
from counterpoint.recalibration.choose import NONE, HeldOut, choose, cross_fit, fit_held_out
from counterpoint.recalibration.families import Family, families
from counterpoint.recalibration.fit import FitSet, fit
from counterpoint.records.recalibrated import Candidate, Care, Choice, Recalibration
from tests.recalibration.simulated import alone, labels_of, logits_of, planted, slow_nll, values

FAMILIES = {family.name: family for family in families(2, shifted=True)}
CARES: tuple[Care, ...] = ("clean", "both", "shift")
SHARES: Mapping[Care, float] = {"clean": 0.0, "both": 0.5, "shift": 1.0}


def made(
    truth: Recalibration,
    images: int = 80,
    *,
    corruptions: int = 3,
    severities: int = 2,
    members: int = 2,
    seed: int = 0,
) -> HeldOut:
    """Images whose labels follow `truth`, clean and corrupted: the further the members lie apart."""
    rng = np.random.default_rng(seed)

    def labelled(noise: float) -> Labelled:
        logits = logits_of(rng, images, members, 3)
        logits = logits + noise * rng.normal(size=logits.shape)
        return Labelled(logits, labels_of(rng, truth, logits))

    shifted = {f"c{i}": [labelled(1.0 + severity) for severity in range(severities)] for i in range(corruptions)}
    return HeldOut(labelled(0.0), shifted)


def first(sets: HeldOut, count: int) -> HeldOut:
    """The corrupted sets have the first `count` images only, and the very last one some more."""
    shifted = {name: [one.select(slice(count)) for one in ones] for name, ones in sets.shifted.items()}
    name, ones = list(sets.shifted.items())[-1]
    return HeldOut(sets.clean, shifted | {name: [*shifted[name][:-1], ones[-1].select(slice(count + 5))]})


def candidate(choice: Choice, name: str) -> Candidate:
    (found,) = (one for one in choice.candidates if one.name == name)
    return found


def weighted(family: Family, clean: Labelled, cells: list[Labelled], care: Care) -> Recalibration:
    """Fitted as is promised: to clean images, or to clean ones and all corrupted sets together."""
    share = SHARES[care] if family.images == "shifted" else 0.0
    sets = [FitSet(clean, 1 - share)] if share < 1 else []
    sets += [FitSet(one, share / len(cells)) for one in cells] if share > 0 else []
    return fit(family, sets)


def scores_by_hand(family: Family, held_out: HeldOut, care: Care) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Each image's NLL, clean and under each corruption, from plain loops over what `fit` finds."""
    count = held_out.common_images
    halves = np.array_split(np.random.default_rng(0).permutation(len(held_out.clean)), 2)
    clean = np.empty(len(held_out.clean))
    for mine, others in (halves, halves[::-1]):
        cells = [one.select(others[others < len(one)]) for sets in held_out.shifted.values() for one in sets]
        clean[mine] = slow_nll(
            weighted(family, held_out.clean.select(others), cells, care), held_out.clean.select(mine)
        )
    shifted = {}
    for name, sets in held_out.shifted.items():
        cells = [one for other, ones in held_out.shifted.items() if other != name for one in ones]
        found = weighted(family, held_out.clean, cells, care)
        shifted[name] = np.mean([slow_nll(found, one.select(slice(count))) for one in sets], axis=0)
    return clean[:count], shifted


@pytest.mark.parametrize("care", CARES)
@pytest.mark.parametrize("corrupted_images", [90, 60])
def test_the_table_is_that_of_plain_loops(care: Care, corrupted_images: int) -> None:
    """A corruption is judged with the others' parameters, and each half of the clean images with the other half's."""
    held_out = first(made(planted("before", 0.5, disagreement=3.0), 90, corruptions=2), corrupted_images)
    names = ["before", "per-member, shifted", "by disagreement"]
    choice = choose([FAMILIES[name] for name in names], held_out, care)
    assert (choice.care, choice.images, choice.refused) == (care, corrupted_images, {})
    assert [one.name for one in choice.candidates] == ["none", *names]
    by_image = {}
    for name in ("none", *names):
        if name == "none":
            clean = np.array(slow_nll(planted("before", 0.0), held_out.clean))[:corrupted_images]
            shifted = {
                corruption: np.mean([slow_nll(planted("before", 0.0), one)[:corrupted_images] for one in sets], axis=0)
                for corruption, sets in held_out.shifted.items()
            }
        else:
            clean, shifted = scores_by_hand(FAMILIES[name], held_out, care)
        found = candidate(choice, name)
        assert found.parameters == {"none": 0, "before": 1, "per-member, shifted": 2, "by disagreement": 2}[name]
        assert found.clean == pytest.approx(clean.mean())
        assert found.shifted == pytest.approx({corruption: nll.mean() for corruption, nll in shifted.items()})
        under_shift = np.mean(list(shifted.values()), axis=0)
        by_image[name] = {"clean": clean, "both": (clean + under_shift) / 2, "shift": under_shift}[care]
        assert found.score == pytest.approx(by_image[name].mean())
    best = min(by_image, key=lambda name: by_image[name].mean())
    within = []
    for name, score in by_image.items():
        expected = mean_difference(score, by_image[best])
        above = candidate(choice, name).above_best
        assert (above.difference, above.low, above.high) == pytest.approx((expected.value, expected.low, expected.high))
        if expected.low <= 0:
            within.append(candidate(choice, name))
    assert choice.chosen == min(within, key=lambda one: (one.parameters, one.score)).name


@pytest.mark.parametrize("care", CARES)
def test_a_corruption_has_no_say_in_the_parameters_that_it_is_judged_with(care: Care) -> None:
    held_out = made(planted("before", 0.3))
    nonsense = [
        replace(one, labels_N=(one.labels_N + 1) % 3) for one in made(planted("before", 0.0), seed=5).shifted["c1"]
    ]
    changed = HeldOut(held_out.clean, {**held_out.shifted, "c1": nonsense})
    for family in FAMILIES.values():
        before, after = (fit_held_out(family, one.without("c1"), care) for one in (held_out, changed))
        assert before == after
    choice = choose([FAMILIES["before, shifted"]], changed, care)
    judged = candidate(choice, "before, shifted").shifted["c1"]
    parameters = fit_held_out(FAMILIES["before, shifted"], held_out.without("c1"), care)
    assert judged == pytest.approx(np.mean([slow_nll(parameters, one) for one in nonsense]))


@pytest.mark.parametrize("name", FAMILIES)
def test_an_image_has_no_say_in_its_own_parameters(name: str) -> None:
    held_out = made(planted("before", 0.4), 41, corruptions=2, severities=1)
    fitted = list(cross_fit(FAMILIES[name], held_out, "both"))
    assert sorted(np.concatenate([images for images, _ in fitted]).tolist()) == list(range(41))
    image = int(fitted[0][0][0])

    def without_sense(one: Labelled) -> Labelled:
        logits, labels = one.logits_MNK.copy(), one.labels_N.copy()
        logits[:, image] = -logits[:, image]
        labels[image] = (labels[image] + 1) % 3
        return Labelled(logits, labels)

    shifted = {corruption: [without_sense(one) for one in sets] for corruption, sets in held_out.shifted.items()}
    changed = list(cross_fit(FAMILIES[name], HeldOut(without_sense(held_out.clean), shifted), "both"))
    for (images, before), (same_images, after) in zip(fitted, changed, strict=True):
        assert (images == same_images).all()
        assert (before == after) == (image in images)


def test_the_halves_are_those_of_a_fixed_seed_and_take_all_their_sets() -> None:
    held_out = first(made(planted("before", 0.4), 31), 10)
    order = np.random.default_rng(0).permutation(31)
    halves = (np.sort(order[:16]), np.sort(order[16:]))
    for (images, found), mine, other in zip(
        cross_fit(FAMILIES["by both"], held_out, "both"), halves[::-1], halves, strict=True
    ):
        assert (images == mine).all()
        cells = [one.select(other[other < len(one)]) for sets in held_out.shifted.values() for one in sets]
        expected = weighted(FAMILIES["by both"], held_out.clean.select(other), cells, "both")
        assert values(found) == pytest.approx(values(expected), abs=1e-4)


def test_the_simplest_is_chosen_where_it_is_true() -> None:
    held_out = made(planted("before", math.log(3)), 400, corruptions=4, severities=1)
    richer = [FAMILIES[name] for name in ("by both", "by disagreement", "by entropy", "per-member", "before")]
    choice = choose(richer, held_out, "both")
    assert choice.chosen == "before"
    assert candidate(choice, "none").above_best.low > 0
    scores = {one.name: one.score for one in choice.candidates}
    assert scores["before"] == pytest.approx(min(scores.values()), abs=0.01)


def test_the_richer_is_chosen_only_beyond_the_noise() -> None:
    """With the same small slope, many images tell what few do not."""
    truth, names = planted("before", 1.0, disagreement=1.5), ("before, shifted", "by disagreement")
    few, many = (made(truth, images, severities=1, seed=3) for images in (60, 1500))
    choices = [choose([FAMILIES[name] for name in names], held_out, "both") for held_out in (few, many)]
    assert [choice.chosen for choice in choices] == ["before, shifted", "by disagreement"]


@pytest.mark.parametrize("members", [2, 4])
def test_disagreement_is_chosen_where_it_says_how_sure_to_be(members: int) -> None:
    held_out = made(planted("before", -0.5, disagreement=8.0), 300, severities=1, members=members)
    choice = choose(families(members, shifted=True), held_out, "both")
    assert choice.chosen == "by disagreement"
    assert candidate(choice, "by disagreement").score < candidate(choice, "before, shifted").score - 0.02


def test_none_is_chosen_where_the_temperature_is_1() -> None:
    choice = choose(list(FAMILIES.values()), made(NONE, 300, severities=1), "both")
    assert choice.chosen == "none"
    assert candidate(choice, "none").parameters == 0
    assert len(choice.candidates) == 10


def test_what_is_cared_for_decides() -> None:
    """Clean images need no temperature, and corrupted ones a high one."""
    clean, shifted = made(NONE, 400, severities=1), made(planted("before", math.log(4)), 400, severities=1, seed=1)
    held_out = HeldOut(clean.clean, shifted.shifted)
    choices = {care: choose([FAMILIES["before, shifted"]], held_out, care) for care in CARES}
    assert {care: choice.chosen for care, choice in choices.items()} == {
        "clean": "none",
        "both": "before, shifted",
        "shift": "before, shifted",
    }
    fits = {care: fit_held_out(FAMILIES["before, shifted"], held_out, care) for care in CARES}
    temperatures = [values(fits[care])[0] for care in CARES]
    assert temperatures == sorted(temperatures)
    assert temperatures[0] == pytest.approx(0, abs=0.2)
    assert temperatures[2] == pytest.approx(math.log(4), abs=0.2)


@pytest.mark.parametrize("name", FAMILIES)
def test_fits_weigh_clean_and_corrupted_images_as_is_cared_for(name: str) -> None:
    held_out = made(planted("before", 0.5, entropy=1.0), 60)
    family = FAMILIES[name]
    cells = [one for sets in held_out.shifted.values() for one in sets]
    for care in CARES:
        assert fit_held_out(family, held_out, care) == weighted(family, held_out.clean, cells, care)
    of_clean = fit(family, alone(held_out.clean))
    assert fit_held_out(family, held_out, "clean") == of_clean
    assert (fit_held_out(family, held_out, "shift") == of_clean) == (family.images == "clean")


def test_those_that_cannot_be_fitted_are_listed_with_the_reason() -> None:
    one_network = made(planted("before", 0.5), 60, members=1)
    choice = choose([FAMILIES[name] for name in ("before", "by disagreement")], one_network, "both")
    assert choice.refused == {
        "by disagreement": "'by disagreement' needs the disagreement between members, and there is only one network"
    }
    assert [one.name for one in choice.candidates] == ["none", "before"]
    perfect = made(planted("before", 0.5), 60)
    perfect = HeldOut(
        Labelled(5 * np.eye(3)[perfect.clean.labels_N][None].repeat(2, axis=0), perfect.clean.labels_N), perfect.shifted
    )
    choice = choose(list(FAMILIES.values()), perfect, "both")
    assert list(choice.refused) == ["before", "after", "per-member"]
    assert all("all the way to 0.05" in reason for reason in choice.refused.values())
    assert "before, shifted" in [one.name for one in choice.candidates]


def test_none_is_chosen_where_nothing_can_be_fitted() -> None:
    right = 5 * np.eye(3)[None, np.arange(30) % 3].repeat(2, axis=0)
    images = Labelled(right, np.arange(30) % 3)
    choice = choose(list(FAMILIES.values()), HeldOut(images, {"c0": [images], "c1": [images]}), "both")
    assert choice.chosen == "none"
    assert choice.refused.keys() == FAMILIES.keys()


def test_what_cannot_be_judged_is_refused() -> None:
    held_out = made(planted("before", 0.5), 10)
    with pytest.raises(InputError, match="no images under shift to choose on"):
        choose([FAMILIES["before"]], HeldOut(held_out.clean, {}), "both")
    with pytest.raises(InputError, match="there is one validation image; cross-fitting needs at least two"):
        list(cross_fit(FAMILIES["before"], HeldOut(held_out.clean.select(slice(1)), {}), "both"))


def test_who_cares_for_clean_images_only_needs_no_others() -> None:
    held_out = made(planted("before", 0.5), 1000)
    known = [FAMILIES[name] for name in ("before", "after", "per-member")]
    alone = choose(known, HeldOut(held_out.clean, {}), "clean")
    beside = choose(known, held_out, "clean")
    assert alone.chosen == beside.chosen == "before"
    assert [(one.name, one.score, one.above_best) for one in alone.candidates] == [
        (one.name, one.score, one.above_best) for one in beside.candidates
    ]
    assert [one.shifted for one in alone.candidates] == [{}] * 4


def test_some_images_are_the_same_ones_of_every_set() -> None:
    held_out = first(made(planted("before", 0.5), 10), 4)
    some = held_out.select(np.array([7, 2, 3]))
    assert (some.clean.labels_N == held_out.clean.labels_N[[2, 3, 7]]).all()
    for name, ones in held_out.shifted.items():
        for one, selected in zip(ones, some.shifted[name], strict=True):
            rows = [row for row in (2, 3, 7) if row < len(one)]
            assert (selected.logits_MNK == one.logits_MNK[:, rows]).all()
            assert (selected.labels_N == one.labels_N[rows]).all()


def test_none_is_a_temperature_of_1() -> None:
    logits = made(NONE).clean.logits_MNK
    exponentials = np.exp(logits)
    expected = (exponentials / exponentials.sum(axis=2, keepdims=True)).mean(axis=0)
    assert apply(NONE, logits).ensemble_NK == pytest.approx(expected)
