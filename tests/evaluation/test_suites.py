"""The suites of shifts, and how they are named."""

import pytest

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS
from counterpoint.errors import InputError
from counterpoint.evaluation.suites import CORRUPTED, SUITES, VALIDATION_EXTRA, find_suites


def test_a_suite_has_each_corruption_at_each_severity() -> None:
    assert CORRUPTED.cells[:6] == [*(("gaussian_noise", i) for i in range(1, 6)), ("shot_noise", 1)]
    assert len(CORRUPTED.cells) == 75
    assert len(VALIDATION_EXTRA.cells) == 20


def test_choices_are_made_on_no_test_image_and_on_no_test_corruption() -> None:
    assert (CORRUPTED.part, CORRUPTED.corruptions) == ("test", CORRUPTIONS)
    assert (VALIDATION_EXTRA.part, VALIDATION_EXTRA.corruptions) == ("validation", EXTRA_CORRUPTIONS)
    assert not set(CORRUPTED.corruptions) & set(VALIDATION_EXTRA.corruptions)


def test_suites_are_found_by_name_once_each() -> None:
    assert find_suites(["validation-extra", "corrupted", "validation-extra"]) == [VALIDATION_EXTRA, CORRUPTED]
    assert find_suites([]) == []
    assert {name: suite.name for name, suite in SUITES.items()} == {name: name for name in SUITES}


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown set of images 'corupted'; did you mean 'corrupted'\?.*validation-e"):
        find_suites(["validation-extra", "corupted"])
