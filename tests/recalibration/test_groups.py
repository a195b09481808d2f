"""Recalibrations of images that belong together."""

import numpy as np
import pytest

from counterpoint.recalibration.apply import Labelled
from counterpoint.recalibration.choose import HeldOut, choose, cross_fit, fit_held_out
from counterpoint.recalibration.families import families
from counterpoint.records.recalibrated import Parameter

FAMILIES = {family.name: family for family in families(2, shifted=False)}


def made(images: int, seed: int = 0) -> Labelled:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, images)
    return Labelled(2 * np.eye(3)[labels] + 1.5 * rng.normal(size=(2, images, 3)), labels)


def copied(images: Labelled, times: int) -> Labelled:
    """Each image several times, and its copies as a group."""
    places = np.tile(np.arange(len(images)), times)
    return Labelled(images.logits_MNK[:, places], images.labels_N[places], places)


def standard_error(parameters: tuple[Parameter, ...]) -> float:
    error = parameters[0].standard_error
    assert error is not None
    return error


@pytest.mark.parametrize("name", ["before", "per-member"])
def test_copies_of_an_image_make_no_parameter_surer(name: str) -> None:
    images = made(200)
    copies = copied(images, 4)
    plain, grouped, alone = (
        fit_held_out(FAMILIES[name], HeldOut(one, {}), "clean").log_temperatures
        for one in (images, copies, Labelled(copies.logits_MNK, copies.labels_N))
    )
    assert grouped[0].value == pytest.approx(plain[0].value, abs=1e-5)
    assert standard_error(grouped) == pytest.approx(standard_error(plain), rel=1e-3)
    assert standard_error(alone) == pytest.approx(standard_error(plain) / 2, rel=1e-3)


def test_a_group_is_in_one_half() -> None:
    images = made(90)
    groups_N = np.random.default_rng(0).integers(0, 30, 90)
    grouped = Labelled(images.logits_MNK, images.labels_N, groups_N)
    (first, one), (second, other) = cross_fit(FAMILIES["before"], HeldOut(grouped, {}), "clean")
    assert sorted([*first, *second]) == list(range(90))
    assert not set(groups_N[first]) & set(groups_N[second])
    assert abs(len(set(groups_N[first])) - len(set(groups_N[second]))) <= 1
    assert one == fit_held_out(FAMILIES["before"], HeldOut(grouped.select(second), {}), "clean")
    assert other == fit_held_out(FAMILIES["before"], HeldOut(grouped.select(first), {}), "clean")


def test_a_choice_counts_a_group_as_one_draw() -> None:
    images, grouped = made(120), copied(made(120), 4)
    alone = Labelled(grouped.logits_MNK, grouped.labels_N)
    known = [FAMILIES["before"], FAMILIES["after"]]

    def lengths(one: Labelled) -> list[float]:
        found = choose(known, HeldOut(one, {}), "clean").candidates
        return [candidate.above_best.high - candidate.above_best.low for candidate in found]

    over_images, over_groups, of_copies = lengths(images), lengths(grouped), lengths(alone)
    assert max(over_groups) == pytest.approx(max(over_images), rel=0.3), "other halves, but as many draws"
    assert max(of_copies) < 0.7 * max(over_groups)
