"""From a user's path to labelled sets."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from counterpoint.data import MappedSet, UserImages, load, load_images
from counterpoint.errors import InputError
from counterpoint.images import BadFile, Decoding, decode, fingerprints
from tests.heard import Heard
from tests.images.pictures import write, write_classes


def loaded(source: Path, size: int = 8, **options: object) -> UserImages:
    arguments = {"cache": source.parent / "cache", "workers": 1} | options
    return load_images(source, size, **arguments)  # type: ignore[arg-type]


def some(part: MappedSet | None) -> MappedSet:
    assert part is not None
    return part


def test_parts_are_those_of_the_source(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    for number, part in enumerate(("train", "val", "test")):
        write_classes(folder / part, {"b": 2, "a": number + 1}, seed=100 * number)
    data = loaded(folder)
    assert (data.name, data.source, data.split_off, data.skipped) == ("photos", folder, (), ())
    assert data.train.image_shape == (3, 8, 8)
    for number, (part, images) in enumerate((("train", data.train), ("val", data.val), ("test", data.test))):
        names = [f"{part}/a/{i}.png" for i in range(number + 1)] + [f"{part}/b/{i}.png" for i in range(2)]
        expected = np.stack([decode((folder / name).read_bytes(), Decoding(8)) for name in names])
        assert np.array_equal(some(images).images_NCHW, expected)
        assert some(images).labels_N.tolist() == [0] * (number + 1) + [1] * 2
        assert some(images).numbers_N.tolist() == list(range(number + 3))
        assert some(images).classes == ("a", "b")
        assert some(images).labels_N.dtype == torch.int64


def test_a_split_leaves_out_what_was_added_later_and_follows_what_was_renamed(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"b": 20, "c": 20})
    first = loaded(folder)
    (folder / "b" / "0.png").rename(folder / "b" / "zebra.png")
    write(folder / "c" / "copy.png", (folder / "c" / "3.png").read_bytes())
    write_classes(folder, {"a": 5, "d": 5}, seed=50)
    again = loaded(folder, split=first.split)
    assert (again.added, again.keys, again.split) == (11, first.keys, first.split)
    for part, before in ((again.train, first.train), (again.val, first.val), (again.test, first.test)):
        assert torch.equal(some(part).images_NCHW, some(before).images_NCHW)
        assert torch.equal(some(part).labels_N, some(before).labels_N)
        assert torch.equal(some(part).numbers_N, some(before).numbers_N)
        assert some(part).classes == ("b", "c")
    grown = loaded(folder, split=first.split, with_added=True, seed=7)
    assert (grown.added, grown.train.classes) == (0, ("a", "b", "c", "d"))
    for name in ("train", "validation", "test"):
        assert first.contents[name].keys() <= grown.contents[name].keys()
    (folder / "c" / "5.png").unlink()
    with pytest.raises(
        InputError, match=r"1 of the images that the run was begun with are gone from .*photos, or have"
    ):
        loaded(folder, split=first.split)


def test_a_part_that_the_source_gives_is_taken_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    for number, part in enumerate(("train", "test")):
        write_classes(folder / part, {"a": 10, "b": 10}, seed=100 * number)
    first = loaded(folder)
    for part in ("train", "test"):
        write(folder / part / "a" / "1 new.png", seed=900 + len(part))
    again = loaded(folder, split=first.split)
    assert [again.keys[part] == first.keys[part] for part in ("train", "validation", "test")] == [True, True, False]
    assert (again.added, len(some(again.test)), len(some(first.test))) == (1, 21, 20)


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_the_images_of_a_group_are_in_one_part(tmp_path: Path, kind: str) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (60, 8, 8, 3), np.uint8)
    labels, groups = [image % 2 for image in range(60)], [image // 6 for image in range(60)]
    source = tmp_path / f"scans.{kind}"
    if kind == "npz":
        np.savez(source, images=pixels, labels=labels, group=groups)
    else:
        for image in range(60):
            Image.fromarray(pixels[image]).save(tmp_path / f"{image}.png")
        rows = [f"{image}.png,{labels[image]},patient {groups[image]}\n" for image in range(60)]
        source.write_text("path,label,group\n" + "".join(rows))
    data = loaded(source, val=0.2, test=0.2)
    parts = [{number // 6 for number in some(part).numbers_N.tolist()} for part in (data.train, data.val, data.test)]
    assert [len(part) for part in parts] == [6, 2, 2]
    assert set.union(*parts) == set(range(10))
    assert data.notes[0].startswith("60 images in 10 groups: the images of a group are in one part")


def test_columns_that_may_say_what_belongs_together_are_named(tmp_path: Path) -> None:
    write_classes(tmp_path / "photos", {"a": 4, "b": 4})
    rows = [(f"photos/{label}/{image}.png,{label}", image) for label in "ab" for image in range(4)]
    source = tmp_path / "list.csv"
    source.write_text("path,label,patient,age\n" + "".join(f"{row},{image},50\n" for row, image in rows))
    assert loaded(source).notes == (
        "the columns patient, age are not read; if one of them says which images are of the same patient, object or "
        "video, call it group, and these stay in one part",
    )
    source.write_text("path,label,patient\n" + "".join(f"{row},{image}\n" for row, image in rows))
    assert loaded(source).notes[0].startswith("the column patient is not read; if it says")
    parted = ("train", "train", "val", "test") * 2
    lines = [f"{row},{part},{image}\n" for (row, image), part in zip(rows, parted, strict=True)]
    source.write_text("path,label,part,patient\n" + "".join(lines))
    assert loaded(source).notes == (), "the parts were made on purpose"


@pytest.mark.parametrize(("brightest", "shown"), [(4095, 16), (16_383, 64), (20_000, None), (65_535, None)])
def test_pictures_that_use_a_part_of_their_16_bits_are_noted(tmp_path: Path, brightest: int, shown: int | None) -> None:
    for number in range(8):
        path = tmp_path / "scans" / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.linspace(number, brightest, 64).astype(np.uint16).reshape(8, 8)).save(path)
    (*notes,) = loaded(tmp_path / "scans", grey=True).notes
    assert [f"brighter than {shown} of 255" in note for note in notes] == ([] if shown is None else [True])


def test_a_missing_val_is_split_off_train_and_a_missing_test_stays_missing(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    write_classes(folder / "train", {"a": 20, "b": 10})
    data = loaded(folder, val=0.2)
    val = some(data.val)
    assert (len(data.train), len(val), data.test, data.split_off) == (24, 6, None, ("val",))
    assert val.labels_N.bincount().tolist() == [4, 2]
    whole = loaded(folder, val=0)
    assert (whole.val, whole.test, whole.split_off) == (None, None, ())
    assert whole.train.numbers_N.tolist() == list(range(30))
    for part in (data.train, val):
        assert torch.equal(part.images_NCHW, whole.train.images_NCHW[part.numbers_N])
        assert torch.equal(part.labels_N, whole.train.labels_N[part.numbers_N])
    assert sorted([*data.train.numbers_N.tolist(), *val.numbers_N.tolist()]) == list(range(30))
    assert data.key == whole.key, "a split is no part of what the images are"


def test_a_folder_without_parts_is_split_into_three_by_seed(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 20, "b": 40})
    first, again, reseeded = (loaded(folder, seed=seed) for seed in (0, 0, 1))
    parts = [first.train, some(first.val), some(first.test)]
    assert [part.labels_N.bincount().tolist() for part in parts] == [[14, 28], [3, 6], [3, 6]]
    assert sorted(number for part in parts for number in part.numbers_N.tolist()) == list(range(60))
    assert first.split_off == ("val", "test")
    assert torch.equal(first.train.numbers_N, again.train.numbers_N)
    assert not torch.equal(first.train.numbers_N, reseeded.train.numbers_N)
    assert loaded(folder, test=0).test is None


def test_twins_of_one_folder_are_never_on_both_sides(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 12, "b": 12})
    for number in range(12):
        write(folder / "a" / f"copy {number}.png", (folder / "a" / f"{number}.png").read_bytes())
    for seed in range(5):
        data = loaded(folder, val=0.3, test=0.3, seed=seed)
        seen = [
            {image.tobytes() for image in part.images_NCHW.numpy()}
            for part in (data.train, some(data.val), some(data.test))
        ]
        assert len(set.union(*seen)) == sum(map(len, seen)) == 24
        assert [note.partition(" (")[0] for note in data.notes] == ["12 images are copies"]


def test_a_class_with_too_few_images_for_every_part_is_refused(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 3, "猫": 2})
    with pytest.raises(InputError, match="the class '猫' has 2 different images; 3 are needed"):
        loaded(folder)


def test_bad_files_are_returned_when_they_are_skipped_and_move_nothing(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 10, "b": 10})
    clean = loaded(folder, cache=tmp_path / "first")
    write(folder / "a" / "000.png", b"a text")
    with pytest.raises(InputError, match="1 file of"):
        loaded(folder)
    data = loaded(folder, skip_bad=True)
    assert data.skipped == (BadFile("a/000.png", data.skipped[0].reason),)
    assert data.key == clean.key
    for part, same in (
        (data.train, clean.train),
        (some(data.val), some(clean.val)),
        (some(data.test), some(clean.test)),
    ):
        assert torch.equal(part.images_NCHW, same.images_NCHW)
        assert torch.equal(part.numbers_N, same.numbers_N)


def test_progress_is_told_to_the_watcher_while_there_is_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fingerprints, "_SETTLED_NS", -(10**12))  # what was written just now would be read again
    folder, first, second = write_classes(tmp_path / "photos", {"a": 5, "b": 5}), Heard(), Heard()
    loaded(folder, watcher=first)
    loaded(folder, watcher=second)
    assert first.counts == [("reading images", 10, 10), ("decoding images", 10, 10)]
    assert second.counts == []


def test_an_archive_and_a_table_give_what_the_files_give(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "photos", {"a": 4, "b": 4})
    from_folder = loaded(folder, grey=True)
    names = [f"{label}/{number}.png" for label in "ab" for number in range(4)]
    (folder / "list.csv").write_text("path,label\n" + "".join(f"{name},{name[0]}\n" for name in names))
    np.savez(
        tmp_path / "set.npz",
        images=np.stack([np.asarray(Image.open(folder / name)) for name in names]),
        labels=[name[0] for name in names],
    )
    for data in (loaded(folder / "list.csv", grey=True), loaded(tmp_path / "set.npz", grey=True)):
        assert torch.equal(data.train.images_NCHW, from_folder.train.images_NCHW)
        assert torch.equal(data.train.labels_N, from_folder.train.labels_N)
        assert data.train.images_NCHW.shape[1:] == (1, 8, 8)
    assert (loaded(folder / "list.csv").name, loaded(tmp_path / "set.npz").name) == ("list", "set")


def test_cifar_as_png_files_has_the_same_bits_and_labels(tmp_path: Path, real_data: Path) -> None:
    cifar = load("cifar10", real_data).train.first(200)
    folder = tmp_path / "cifar"
    lines = ["path,label,part\n"]
    for number, (image_CHW, label) in enumerate(zip(cifar.images_NCHW.numpy(), cifar.labels_N.tolist(), strict=True)):
        write(folder / f"{number}.png", image_CHW.transpose(1, 2, 0))
        lines.append(f"{number}.png,{cifar.classes[label]},train\n")
    (folder / "cifar.csv").write_text("".join(lines))
    data = loaded(folder / "cifar.csv", 32, val=0, cache=tmp_path / "cache")
    assert torch.equal(data.train.images_NCHW, cifar.images_NCHW)
    assert torch.equal(data.train.labels_N, cifar.labels_N)
    assert data.train.classes == cifar.classes
    assert data.train.numbers_N.tolist() == list(range(200))
