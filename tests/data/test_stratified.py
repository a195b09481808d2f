"""Splitting by chance, against a slow twin, and what must hold of every split."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from counterpoint.data.stratified import FREE, TEST, TRAIN, VAL, stratified_parts
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
    labels: list[int],
    val: float = 0.0,
    test: float = 0.0,
    seed: int = 0,
    contents: list[int] | None = None,
    groups: list[int] | None = None,
    known: list[int] | None = None,
) -> list[int]:
    groups_N = None if groups is None else torch.tensor(first_alike([str(group) for group in groups]))
    alike = first_alike([str(content) for content in (contents or range(len(labels)))])
    classes = tuple(f"class {label}" for label in range(max(labels) + 1))
    parts_N = stratified_parts(
        torch.tensor(labels),
        torch.tensor(alike),
        classes,
        val=val,
        test=test,
        seed=seed,
        groups_N=groups_N,
        known_N=None if known is None else torch.tensor(known),
    )
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


@settings(deadline=None, max_examples=60)
@given(labelled(), SHARES, SHARES, st.integers(0, 3))
def test_groups_of_one_image_change_nothing(labels: list[int], val: float, test: float, seed: int) -> None:
    groups = list(range(len(labels)))
    assert split(labels, val, test, seed, groups=groups) == split(labels, val, test, seed)


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 2), min_size=40, max_size=60), SHARES, SHARES, st.data())
def test_a_group_and_the_copies_of_its_images_stay_together(
    of_groups: list[int], val: float, test: float, data: st.DataObject
) -> None:
    """Each group has a class, and further images of any group are in any class. Some images are copies of others."""
    more = data.draw(st.lists(st.integers(0, len(of_groups) - 1), max_size=8))
    labels = [0, 1, 2] * 5 + of_groups + data.draw(st.lists(st.integers(0, 2), min_size=len(more), max_size=len(more)))
    groups = [*range(15 + len(of_groups)), *(15 + group for group in more)]
    contents = list(range(len(labels)))
    for copy in data.draw(st.lists(st.integers(20, len(labels) - 1), max_size=2)):
        contents[copy] = contents[copy - 1]
    parts = split(labels, val, test, groups=groups, contents=contents)
    for one in range(len(labels)):
        for other in range(one):
            if groups[one] == groups[other] or contents[one] == contents[other]:
                assert parts[one] == parts[other]
    for label in set(labels):
        own = {part for part, of in zip(parts, labels, strict=True) if of == label}
        assert own == {TRAIN, *([VAL] if val else []), *([TEST] if test else [])}


def test_the_shares_are_of_each_class_s_groups() -> None:
    """Patients with one to five images each: a tenth are ill, and one of them has images of both classes."""
    sizes = [1 + patient % 5 for patient in range(200)]
    groups = [patient for patient, size in enumerate(sizes) for _ in range(size)]
    labels = [
        int(patient % 10 == 0 and not (patient == 0 and i)) for patient in range(200) for i in range(sizes[patient])
    ]
    parts = split(labels, val=0.15, test=0.15, groups=groups)
    for part in (VAL, TEST):
        ill = {group for group, label, of in zip(groups, labels, parts, strict=True) if label == 1 and of == part}
        well = {group for group, label, of in zip(groups, labels, parts, strict=True) if label == 0 and of == part}
        assert (len(ill), len(well - ill)) == (3, 27)
    assert [image for image, part in enumerate(split(labels, test=0.15, groups=groups)) if part == TEST] == [
        image for image, part in enumerate(parts) if part == TEST
    ], "the test images do not depend on val"


def test_too_few_groups_are_refused() -> None:
    with pytest.raises(InputError, match="'class 1' has 2 different groups; 3 are needed, one each for train, val, te"):
        split([0, 0, 0, 1, 1, 1], val=0.1, test=0.1, groups=[1, 2, 3, 4, 4, 5])


def test_a_part_without_a_class_is_refused() -> None:
    """Class 2 is in four groups. The classes 0 and 1 have images in them too, and need two each for val and test."""
    labels, groups = [0, 0, 0, 1, 1, 1, 2, 2, 2, 2], [1, 2, 3, 4, 5, 6, 1, 2, 4, 5]
    found = set()
    for seed in range(30):
        try:
            parts = split(labels, val=0.1, test=0.1, seed=seed, groups=groups)
        except InputError as error:
            found.add(str(error).partition(": other classes")[0])
        else:
            found.add("whole")
            assert set(parts[6:]) == {TRAIN, VAL, TEST}
    assert found >= {"whole", "no image of the class 'class 2' is left for train"}


@settings(deadline=None, max_examples=60)
@given(labelled(), SHARES, SHARES, st.integers(1, 20), st.integers(0, 3))
def test_known_images_stay_and_new_ones_bring_each_part_to_its_share(
    labels: list[int], val: float, test: float, more: int, seed: int
) -> None:
    before = split(labels, val, test)
    grown = labels + [0] * more
    parts = split(grown, val, test, seed=seed, known=before + [FREE] * more)
    assert parts[: len(labels)] == before
    own = [part for part, label in zip(parts, grown, strict=True) if label == 0]
    for part, share in ((TEST, test), (VAL, val)):
        had = [part for part, label in zip(before, labels, strict=True) if label == 0].count(part)
        wanted = max(round(share * len(own)), had) if share else 0
        assert own.count(part) == min(wanted, had + more), "no known image moves, and new ones go to test first"
        more -= own.count(part) - had


def test_new_images_of_a_known_group_go_where_it_is() -> None:
    labels, groups = [0, 1] * 6, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]
    before = split(labels, val=0.2, test=0.2, groups=groups)
    again = split(labels + labels, val=0.2, test=0.2, seed=5, groups=groups * 2, known=before + [FREE] * 12)
    assert again == before * 2


def test_a_class_that_was_all_trained_on_is_refused() -> None:
    with pytest.raises(
        InputError, match="no image of the class 'class 1' is left for val: the earlier run has its images"
    ):
        split([0] * 4 + [1] * 4 + [0] * 9, val=0.2, known=[TRAIN] * 8 + [FREE] * 9)
