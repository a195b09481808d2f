"""Splitting by chance, against a slow twin, and what must hold of every split."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data.stratified import TEST, TRAIN, VAL, stratified_parts
from counterpoint.errors import InputError
from counterpoint.images.duplicates import first_alike
from counterpoint.seeding import Stream

SHARES = st.sampled_from([0.0, 0.05, 0.15, 0.2, 0.3])
"""Small enough that two of them leave one of three images to train on without being cut."""


@st.composite
def labelled(draw: st.DrawFn) -> list[int]:
    """Labels of at least three images for each of a few classes, in any order."""
    classes = draw(st.integers(1, 4))
    counts = draw(st.lists(st.integers(3, 30), min_size=classes, max_size=classes))
    return draw(st.permutations([label for label, count in enumerate(counts) for _ in range(count)]))


def split(
    labels: list[int], val: float = 0.0, test: float = 0.0, seed: int = 0, contents: list[int] | None = None
) -> list[int]:
    alike = first_alike([str(content) for content in (contents or range(len(labels)))])
    classes = tuple(f"class {label}" for label in range(max(labels) + 1))
    parts_N = stratified_parts(torch.tensor(labels), torch.tensor(alike), classes, val=val, test=test, seed=seed)
    return list(parts_N.tolist())


def slowly(labels: list[int], val: float, test: float, seed: int) -> list[int]:
    parts = [TRAIN] * len(labels)
    order = Stream(seed, "stratified").permutation(len(labels)).tolist()
    for label in set(labels):
        members = [image for image in order if labels[image] == label]
        tests = max(1, round(test * len(members))) if test else 0
        vals = max(1, round(val * len(members))) if val else 0
        for image in members[:tests]:
            parts[image] = TEST
        for image in members[tests : tests + vals]:
            parts[image] = VAL
    return parts


@settings(deadline=None, max_examples=60)
@given(labelled(), SHARES, SHARES, st.integers(0, 3))
def test_it_is_its_slow_twin(labels: list[int], val: float, test: float, seed: int) -> None:
    assert split(labels, val=val, test=test, seed=seed) == slowly(labels, val, test, seed)


@settings(deadline=None, max_examples=60)
@given(labelled(), SHARES, SHARES, st.integers(0, 3))
def test_every_class_is_in_every_part_in_proportion(labels: list[int], val: float, test: float, seed: int) -> None:
    parts = split(labels, val=val, test=test, seed=seed)
    assert len(parts) == len(labels)
    for label in set(labels):
        own = [part for part, of in zip(parts, labels, strict=True) if of == label]
        assert own.count(TRAIN) >= 1
        for part, share in ((VAL, val), (TEST, test)):
            assert abs(own.count(part) - share * len(own)) <= max(0.5, 1 - share * len(own)) + 1e-9
            assert bool(own.count(part)) == bool(share)


@settings(deadline=None, max_examples=40)
@given(labelled(), SHARES, SHARES, st.data())
def test_images_with_the_same_content_stay_together(
    labels: list[int], val: float, test: float, data: st.DataObject
) -> None:
    """Twins are added of some images, under any label and anywhere behind them."""
    twins = data.draw(st.lists(st.integers(0, len(labels) - 1), max_size=10))
    contents = [*range(len(labels)), *twins]
    twin_labels = data.draw(st.lists(st.integers(0, max(labels)), min_size=len(twins), max_size=len(twins)))
    parts = split(labels + twin_labels, val, test, contents=contents)
    assert all(parts[len(labels) + place] == parts[twin] for place, twin in enumerate(twins))


@given(labelled())
@settings(deadline=None, max_examples=20)
def test_the_test_images_do_not_depend_on_the_share_for_validation(labels: list[int]) -> None:
    tests = [
        [image for image, part in enumerate(split(labels, val=val, test=0.3)) if part == TEST] for val in (0, 0.15, 0.3)
    ]
    assert tests[0] == tests[1] == tests[2]


def test_the_seed_decides() -> None:
    labels = [0, 1] * 30
    first, again, reseeded = (split(labels, val=0.2, test=0.2, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first != reseeded
    pinned = [4, 15, 20, 35, 36, 39, 44, 45, 48, 51, 58, 59]
    assert [image for image, part in enumerate(first) if part == VAL] == pinned


@pytest.mark.parametrize(
    ("labels", "val", "test", "message"),
    [
        ([0, 0, 0, 1, 1], 0.1, 0.1, "'class 1' has 2 different images; 3 are needed, one each for train, val, test:"),
        ([0, 0, 1], 0.1, 0.0, "'class 1' has 1 different image; 2 are needed, one each for train, val:"),
        ([0, 1], 0.6, 0.4, "shares 0.6 for val and 0.4 for test leave nothing to train on"),
        ([0, 1], -0.1, 0.0, "the share of images for val is -0.1; it must be at least 0"),
        ([0, 1], 0.0, 1.0, "the share of images for test is 1.0; it must be at least 0 and less than 1"),
        ([0, 1], float("nan"), 0.0, "the share of images for val is nan"),
    ],
)
def test_an_impossible_split_is_refused(labels: list[int], val: float, test: float, message: str) -> None:
    with pytest.raises(InputError, match=message):
        split(labels, val, test)


def test_twins_count_once() -> None:
    with pytest.raises(InputError, match="'class 0' has 2 different images"):
        split([0, 0, 0, 1, 1, 1], val=0.1, test=0.1, contents=[7, 7, 8, 1, 2, 3])


def test_large_shares_leave_an_image_to_train_on() -> None:
    assert sorted(split([0, 0, 0], val=0.5, test=0.49)) == [TRAIN, VAL, TEST]
    assert sorted(split([0, 0, 0, 0], val=0.45, test=0.45)) == [TRAIN, VAL, TEST, TEST]
    assert sorted(split([0, 0], val=0.9, test=0.0)) == [TRAIN, VAL]


def test_nothing_is_split_off_without_shares() -> None:
    assert split([0, 1, 1]) == [TRAIN] * 3
