from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterpoint.errors import InputError
from counterpoint.images.duplicates import check_duplicates, first_alike, notes_on_copies
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


def test_copies_and_contradictory_labels_are_noted() -> None:
    counted = "figures and intervals count each copy as an image of its own"
    wrong = "at least one of them is wrong"
    for hashes, expected in (
        (["w", "x", "y", "z"], []),
        (["x", "x", "y", "z"], [f"1 image is a copy of another one (a/1.png and a/2.png); {counted}"]),
        (
            ["x", "x", "x", "z"],
            [
                f"2 images are copies (such as a/1.png and a/2.png); {counted}",
                f"the same image has two labels: a/1.png and b/1.png; {wrong}",
            ],
        ),
        (
            ["x", "y", "x", "y"],
            [
                f"2 images are copies (such as a/1.png and b/1.png); {counted}",
                f"the same image has two labels: a/1.png and b/1.png (2 such pairs in all); {wrong}",
            ],
        ),
    ):
        assert list(notes_on_copies(listing(None), hashes)) == expected
