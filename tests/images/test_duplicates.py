from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.images.duplicates import check_duplicates, first_alike
from counterpoint.images.listing import Listing


@given(st.lists(st.sampled_from("abcdef")))
def test_the_first_alike_is_the_first_with_the_same_content(contents: list[str]) -> None:
    assert first_alike(contents) == tuple(contents.index(content) for content in contents)


def listing(parts: tuple[str, ...] | None) -> Listing:
    return Listing(Path("photos"), ("a/1.png", "a/2.png", "b/1.png", "b/2.png"), (0, 0, 1, 1), parts, ("a", "b"))


def test_the_same_content_in_two_parts_is_refused_with_both_names() -> None:
    parted = listing(("train", "train", "val", "test"))
    with pytest.raises(InputError, match=r"a/2.png in train and b/1.png in val of photos are the same image; remove"):
        check_duplicates(parted, ["w", "x", "x", "z"])
    with pytest.raises(InputError, match=r"a/1.png in train and b/1.png in val .*\(2 such pairs in all\)"):
        check_duplicates(parted, ["w", "x", "w", "w"])


def test_twins_within_a_part_and_without_parts_are_let_be() -> None:
    check_duplicates(listing(("train", "train", "val", "test")), ["x", "x", "y", "z"])
    check_duplicates(listing(None), ["x", "x", "x", "z"])
