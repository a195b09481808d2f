"""The suites of shifts and how they are named, and a suite's images: whose files are used, and whose frost."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, VERSION, corrupt, read_about
from counterpoint.corrupt.cells import write_about
from counterpoint.data.sets import DataSet
from counterpoint.errors import InputError
from counterpoint.evaluation.suites import (
    CORRUPTED,
    SUITES,
    VALIDATION_EXTRA,
    Suite,
    corrupted_set,
    find_suites,
    make_corrupted_set,
)
from counterpoint.pictures.atlas import draw_image_atlas
from counterpoint.records.images import Shift, Source
from tests.heard import Heard
from tests.small import few_digits

PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


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


@pytest.fixture
def photographs_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """COUNTERPOINT_DATA has flat white photographs."""
    folder = tmp_path / "elsewhere" / "frost"
    folder.mkdir(parents=True)
    for name in PHOTOGRAPHS:
        Image.new("RGB", (300, 200), (255, 255, 255)).save(folder / name)
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder.parent))


def official_set(folder: Path, data: DataSet) -> Path:
    folder.mkdir()
    np.save(folder / "labels.npy", np.tile(data.test.labels_N.numpy(), 5).astype(np.uint8))
    for name in CORRUPTIONS:
        np.save(folder / f"{name}.npy", np.zeros((5 * len(data.test), 32, 32, 3), np.uint8))
    return folder


@pytest.mark.usefixtures("photographs_elsewhere")
def test_the_frost_of_another_data_folder_is_not_used(tmp_path: Path) -> None:
    made = make_corrupted_set(few_digits(2), tmp_path / "data", workers=1)
    assert made.source.frost == "texture"
    images_NHWC = few_digits(2).test.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    assert np.array_equal(made.read("frost", 3), corrupt(images_NHWC, "frost", 3, frost_dir="texture"))


@pytest.mark.usefixtures("photographs_elsewhere")
def test_the_atlas_does_not_use_it_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw_image_atlas("1", "digits", tmp_path / "beside.png", seed=0, root=tmp_path / "data")
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "data"))
    draw_image_atlas("1", "digits", tmp_path / "alone.png", seed=0, root=tmp_path / "data")
    assert (tmp_path / "beside.png").read_bytes() == (tmp_path / "alone.png").read_bytes()


def test_the_official_set_comes_first(tmp_path: Path) -> None:
    data = few_digits(2, "cifar10")
    folder = official_set(tmp_path / "CIFAR-10-C", data)
    found = corrupted_set(data, tmp_path)
    assert (found.folder, found.images, found.source) == (folder, 2, Source("official"))
    assert found.suite == CORRUPTED
    assert torch.equal(found.labels_N, data.test.labels_N)


def test_only_the_papers_suite_has_official_files(tmp_path: Path, split_data: DataSet) -> None:
    official_set(tmp_path / "digits-C", split_data)
    held_out = split_data.train.first(2)
    made = corrupted_set(split_data, tmp_path, VALIDATION_EXTRA, held_out)
    assert made.folder == tmp_path / "regenerated" / "digits-validation-extra-seed0"
    assert made.source == Source("regenerated", 0, VERSION, "texture")
    assert torch.equal(made.labels_N, held_out.labels_N)
    images_NHWC = held_out.images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    for name, severity in VALIDATION_EXTRA.cells:
        assert np.array_equal(made.read(name, severity), corrupt(images_NHWC, name, severity, seed=0))


def test_photographs_get_imagenet_c_s_constants_and_a_folder_of_their_own(tmp_path: Path) -> None:
    few = few_digits(1)
    photographs = replace(few, test=replace(few.test, images_NCHW=torch.zeros(1, 3, 80, 80, dtype=torch.uint8)))
    suite = replace(CORRUPTED, corruptions=("brightness",))
    made = make_corrupted_set(photographs, tmp_path, suite, workers=1)
    small_constants = make_corrupted_set(photographs, tmp_path, suite, workers=1, constants="cifar-c")
    assert made.folder == tmp_path / "regenerated" / "digits-C-imagenet-c-seed0"
    assert small_constants.folder == tmp_path / "regenerated" / "digits-C-seed0"
    assert (made.source.constants, small_constants.source.constants) == ("imagenet-c", "cifar-c")
    assert [int(one.read("brightness", 5).max()) for one in (made, small_constants)] == [127, 76]


def test_a_set_says_what_a_part_of_it_is(root: Path) -> None:
    made = corrupted_set(few_digits(40), root)
    assert made.images == 40
    assert made.shift(25) == Shift(made.source, 25, "test", CORRUPTIONS, SEVERITIES)


@pytest.mark.parametrize("side", [32, 72])
def test_the_first_images_alone_have_the_bits_that_they_have_in_the_whole_set(tmp_path: Path, side: int) -> None:
    data = photographs_of(side, images=5)
    suite = Suite("corrupted", "test", (*CORRUPTIONS, *EXTRA_CORRUPTIONS), (1, 3, 5))
    first = corrupted_set(data, tmp_path, suite, count=2)
    assert first.folder.name.endswith("-seed0-first-2")
    whole = corrupted_set(data, tmp_path, suite)
    assert (first.images, whole.images) == (2, 5)
    assert (first.source, first.shift(2)) == (whole.source, whole.shift(2))
    assert torch.equal(first.labels_N, whole.labels_N[:2])
    for cell in suite.cells:
        assert np.array_equal(first.read(*cell), whole.read(*cell)[:2]), cell


def test_only_the_images_that_are_needed_are_made_unless_the_whole_set_is_there(tmp_path: Path) -> None:
    data, heard = few_digits(6), Heard()
    suite = replace(CORRUPTED, corruptions=("fog", "contrast"))
    assert corrupted_set(data, tmp_path, suite, watcher=heard, count=2).images == 2
    assert heard.counts[-1] == ("making digits-C-seed0-first-2", 20, 20)
    assert not (tmp_path / "regenerated" / "digits-C-seed0").exists()
    corrupted_set(data, tmp_path, replace(suite, corruptions=("fog",)))
    assert corrupted_set(data, tmp_path, suite, count=3).images == 3, "fog alone is not the whole set"
    whole = corrupted_set(data, tmp_path, suite)
    for count in (4, 6, 7):
        assert corrupted_set(data, tmp_path, suite, count=count).folder == whole.folder
    (whole.folder / "fog.npy").unlink()
    assert corrupted_set(data, tmp_path, suite, count=4).images == 4
    made = {folder.name for folder in (tmp_path / "regenerated").iterdir()}
    assert made == {"digits-C-seed0", *(f"digits-C-seed0-first-{count}" for count in (2, 3, 4))}


def test_a_file_that_was_changed_is_refused_and_made_again(tmp_path: Path) -> None:
    data, suite = few_digits(3), replace(CORRUPTED, corruptions=("contrast", "fog"))
    before = corrupted_set(data, tmp_path, suite)
    expected = before.read("fog", 5).copy()
    path = before.folder / "fog.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    after = corrupted_set(data, tmp_path, suite)
    assert np.array_equal(after.read("contrast", 1), before.read("contrast", 1))
    for severity in (1, 5):  # whichever cell of the file is read first
        with pytest.raises(
            InputError, match=r"fog\.npy is damaged: its MD5 is .*; remove this file, and the same comm"
        ):
            after.read("fog", severity)
    path.unlink()
    assert np.array_equal(corrupted_set(data, tmp_path, suite).read("fog", 5), expected)


def test_a_file_is_checked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked = []
    monkeypatch.setattr(
        "counterpoint.evaluation.suites.check_file", lambda folder, name: checked.append((folder, name))
    )
    found = corrupted_set(few_digits(2), tmp_path, replace(CORRUPTED, corruptions=("contrast", "fog")))
    for name, severity in found.suite.cells:
        found.read(name, severity)
    assert checked == [(found.folder, "contrast"), (found.folder, "fog")]


def test_a_file_that_another_process_has_just_made_is_read(tmp_path: Path) -> None:
    """Of two processes that make one set, each writes an about.json with the files that it knows of."""
    found = corrupted_set(few_digits(2), tmp_path, replace(CORRUPTED, corruptions=("contrast",)))
    about = read_about(found.folder)
    assert about is not None
    write_about(found.folder, replace(about, finished={}))
    assert found.read("contrast", 1).shape == (2, 32, 32, 1)


def test_official_files_are_read_without_a_checksum(tmp_path: Path) -> None:
    data = few_digits(2)
    official_set(tmp_path / "digits-C", data)
    assert corrupted_set(data, tmp_path).read("fog", 2).shape == (2, 32, 32, 3)


def test_more_images_than_there_are_make_the_whole_set(tmp_path: Path) -> None:
    suite = replace(CORRUPTED, corruptions=("contrast",))
    assert corrupted_set(few_digits(3), tmp_path, suite, count=3).folder.name == "digits-C-seed0"


def photographs_of(side: int, images: int) -> DataSet:
    pixels = torch.from_numpy(np.random.default_rng(7).integers(0, 256, (images, 3, side, side), dtype=np.uint8))
    few = few_digits(images)
    return replace(few, test=replace(few.test, images_NCHW=pixels))


def test_an_official_set_of_other_images_is_refused(tmp_path: Path) -> None:
    data = few_digits(2, "cifar100")
    folder = official_set(tmp_path / "CIFAR-100-C", data)
    (folder / "labels.npy").unlink()
    with pytest.raises(InputError, match=r"labels\.npy is missing or damaged"):
        corrupted_set(data, tmp_path)
    np.save(folder / "labels.npy", np.full(10, 9, np.uint8))
    with pytest.raises(InputError, match=r"labels\.npy does not hold the labels of cifar100's test images five times"):
        corrupted_set(data, tmp_path)


@pytest.mark.parametrize("name", [CORRUPTIONS[0], CORRUPTIONS[-1]])
def test_an_official_set_that_lacks_a_file_is_refused_before_any_work(tmp_path: Path, name: str) -> None:
    data = few_digits(2)
    folder = official_set(tmp_path / "digits-C", data)
    (folder / f"{name}.npy").unlink()
    with pytest.raises(InputError, match=rf"{name}\.npy is missing"):
        corrupted_set(data, tmp_path)
