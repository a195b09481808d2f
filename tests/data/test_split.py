from dataclasses import replace
from pathlib import Path

import pytest
import torch

from counterpoint.data import held_out_split, load_images, parts_of
from counterpoint.errors import InputError
from counterpoint.own_images import OwnImages
from tests.images.pictures import write_classes
from tests.small import TINY, noise_data

ON_SPLIT = replace(TINY, train_on="split")


def test_the_split_is_a_partition_that_never_changes() -> None:
    train, validation = held_out_split(50_000, 5_000)
    assert (len(train), len(validation)) == (45_000, 5_000)
    assert sorted(train.tolist() + validation.tolist()) == list(range(50_000))
    assert train.tolist() == sorted(train.tolist())
    assert validation.tolist() == sorted(validation.tolist())
    assert validation[:5].tolist() == [9, 14, 15, 24, 36]


def test_the_split_depends_on_the_seed_alone() -> None:
    first, again, reseeded = (held_out_split(1_000, 100, seed=seed)[1] for seed in (0, 0, 1))
    assert torch.equal(first, held_out_split(1_000, 100)[1])
    assert torch.equal(first, again)
    assert not torch.equal(first, reseeded)


def test_nothing_held_out_leaves_everything_to_train_on() -> None:
    train, validation = held_out_split(10, 0)
    assert train.tolist() == list(range(10))
    assert len(validation) == 0


@pytest.mark.parametrize("held_out", [-1, 10, 11])
def test_an_impossible_split_is_refused(held_out: int) -> None:
    with pytest.raises(InputError, match=f"held_out is {held_out}.*less than the 10"):
        held_out_split(10, held_out)


@pytest.mark.parametrize(("images", "few"), [(50, 16), (1797, 500), (6000, 600)])
def test_a_tenth_is_held_out_on_the_split_and_of_few_images_up_to_a_third(images: int, few: int) -> None:
    parts = parts_of(noise_data(images, 3), ON_SPLIT)
    assert parts.validation is not None
    assert (len(parts.train), len(parts.validation), parts.reported) == (images - few, few, "validation")


def test_the_two_parts_of_the_split_are_everything() -> None:
    data = noise_data(50, 3)
    parts = parts_of(data, ON_SPLIT)
    assert parts.validation is not None
    assert sorted([*parts.train.numbers_N.tolist(), *parts.validation.numbers_N.tolist()]) == list(range(50))
    for part in (parts.train, parts.validation):
        assert torch.equal(part.images_NCHW, data.train.images_NCHW[part.numbers_N])
        assert torch.equal(part.labels_N, data.train.labels_N[part.numbers_N])
        assert part.classes == data.train.classes
    assert parts.test is data.test


def test_on_everything_nothing_is_held_out_and_figures_are_of_test_images() -> None:
    data = noise_data(50, 3)
    parts = parts_of(data, TINY)
    assert parts.train is data.train
    assert (parts.validation, parts.test, parts.reported, parts.keys) == (None, data.test, "test", {})


def test_a_users_images_have_their_parts_and_figures_are_of_test_images(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 10, "b": 20})
    data = load_images(folder, 8, cache=tmp_path / "cache", workers=1)
    parts = parts_of(data, replace(TINY, dataset="images", images=OwnImages(8)))
    assert (parts.name, parts.reported) == ("photos", "test")
    assert [parts.train, parts.validation, parts.test] == [data.train, data.val, data.test]
    assert set(parts.keys) == {"train", "validation", "test"}


def test_a_parts_key_is_that_of_its_images_alone(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    write_classes(folder / "train", {"a": 10, "b": 10})
    before = load_images(folder, 8, cache=tmp_path / "cache", workers=1).keys
    write_classes(folder / "test", {"a": 3, "b": 3}, seed=99)
    after = load_images(folder, 8, cache=tmp_path / "cache", workers=1).keys
    assert set(before) == {"train", "validation"}
    assert after == dict(before) | {"test": after["test"]}
    (folder / "train" / "a" / "0.png").unlink()
    changed = load_images(folder, 8, cache=tmp_path / "cache", workers=1).keys
    assert changed["test"] == after["test"]
    assert changed["train"] != after["train"]
    other_size = load_images(folder, 9, cache=tmp_path / "cache", workers=1).keys
    assert not set(other_size.values()) & set(changed.values())


def test_another_label_is_another_key(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 4, "b": 4})
    names = [f"{label}/{number}.png" for label in "ab" for number in range(4)]
    keys = []
    for labels in ("aaaabbbb", "aaabbbba"):
        lines = [f"{name},{label},train\n" for name, label in zip(names, labels, strict=True)]
        (folder / "list.csv").write_text("path,label,part\n" + "".join(lines))
        keys.append(load_images(folder / "list.csv", 8, val=0, cache=tmp_path / "cache", workers=1).keys["train"])
    assert keys[0] != keys[1]
