import os
import sys
from pathlib import Path

import pytest

from counterpoint.errors import InputError
from counterpoint.images import BadFile, list_images
from counterpoint.images.listing import notes_on_depth
from tests.images.pictures import write, write_classes


def parts_of(folder: Path, **classes: dict[str, int]) -> Path:
    for seed, (part, counts) in enumerate(classes.items()):
        write_classes(folder / part, counts, seed=100 * seed)
    return folder


def test_parts_and_classes_come_from_the_folders(tmp_path: Path) -> None:
    listing = list_images(parts_of(tmp_path, test={"dog": 1}, train={"dog": 1, "cat": 2}, val={"cat": 1, "dog": 1}))
    assert listing.names == (
        *("train/cat/0.png", "train/cat/1.png", "train/dog/0.png"),
        *("val/cat/0.png", "val/dog/0.png", "test/dog/0.png"),
    )
    assert listing.parts == ("train",) * 3 + ("val",) * 2 + ("test",)
    assert listing.labels == (0, 0, 1, 0, 1, 1)
    assert listing.classes == ("cat", "dog")
    assert listing.bad == ()


def test_a_folder_of_classes_has_no_parts(tmp_path: Path) -> None:
    listing = list_images(write_classes(tmp_path, {"b": 1, "a": 2}))
    assert listing.names == ("a/0.png", "a/1.png", "b/0.png")
    assert listing.labels == (0, 0, 1)
    assert listing.parts is None


def test_classes_are_kept_in_any_script_and_in_sorted_order(tmp_path: Path) -> None:
    names = ["猫", "Ωμέγα", "кошка", "a b", "Zebra", "ابيض", "10", "9", "émile"]
    write_classes(tmp_path, dict.fromkeys(names, 1))
    assert list_images(tmp_path).classes == tuple(sorted(names))


def test_hidden_files_and_folders_do_not_count(tmp_path: Path) -> None:
    write_classes(tmp_path, {"a": 1, "b": 1, ".thumbnails": 1})
    write(tmp_path / ".DS_Store", b"finder")
    write(tmp_path / "a" / "._0.png", b"resource fork")
    write(tmp_path / "desktop.ini", b"explorer")
    write(tmp_path / "b" / "Thumbs.db", b"explorer")
    (tmp_path / "__MACOSX").mkdir()
    assert list_images(tmp_path).names == ("a/0.png", "b/0.png")


def test_a_class_folder_may_have_folders(tmp_path: Path) -> None:
    write_classes(tmp_path, {"a": 1, "b": 1})
    write_classes(tmp_path / "a", {"2019": 1, "2020": 1})
    assert list_images(tmp_path).names == ("a/0.png", "a/2019/0.png", "a/2020/0.png", "b/0.png")


def test_classes_one_level_deeper_are_pointed_out(tmp_path: Path) -> None:
    photos = write_classes(tmp_path / "deep" / "photos", {"dog": 1, "cat": 1})
    with pytest.raises(
        InputError, match=r"has one class, 'photos'.*\(if cat, dog are the classes, name .*deep/photos\)"
    ):
        list_images(photos.parent)
    for part in ("train", "test"):
        write_classes(tmp_path / "above" / "set" / part, {"dog": 1, "cat": 1})
    with pytest.raises(InputError, match=r"has one class, 'set'.*; name .*above/set, which has the parts test, train$"):
        list_images(tmp_path / "above")
    for year in ("2023", "2024"):
        write_classes(tmp_path / "years" / year, {"cat": 2, "dog": 1, f"only {year}": 1})
    years = tmp_path / "years"
    assert notes_on_depth(list_images(years)) == [
        "each of the classes 2023, 2024 has the folders cat, dog: if these are the classes, move the pictures of each "
        "into one folder"
    ]
    write(years / "2023" / "loose.png")
    assert not notes_on_depth(list_images(years)), "a class with pictures of its own is one"
    assert not notes_on_depth(list_images(photos))


def test_any_file_is_listed_whatever_its_name_and_one_without_a_class_is_bad(tmp_path: Path) -> None:
    parts_of(tmp_path, train={"a": 1, "b": 1})
    write(tmp_path / "train" / "a" / "notes.txt", b"no picture")
    write(tmp_path / "README.md", b"ours")
    write(tmp_path / "train" / "loose.png")
    listing = list_images(tmp_path)
    assert "train/a/notes.txt" in listing.names, "its content decides, when it is decoded"
    assert listing.bad == (
        BadFile("README.md", "lies in no class folder"),
        BadFile("train/loose.png", "lies in no class folder"),
    )


@pytest.mark.parametrize("name", ["Train", "validation", "TESTING", "valid"])
def test_another_spelling_of_a_part_is_no_class(tmp_path: Path, name: str) -> None:
    write_classes(tmp_path, {name: 1, "a": 1})
    with pytest.raises(InputError, match=rf"has the folder '{name}'.*name the parts train, val and test"):
        list_images(tmp_path)


def test_a_folder_beside_the_parts_is_refused(tmp_path: Path) -> None:
    parts_of(tmp_path, train={"a": 1, "b": 1}, extra={"a": 1})
    with pytest.raises(InputError, match="has the folder 'extra'"):
        list_images(tmp_path)


def test_parts_without_train_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has val and test and no train"):
        list_images(parts_of(tmp_path, val={"a": 1}, test={"a": 1}))


def test_a_class_folder_without_images_is_named(tmp_path: Path) -> None:
    parts_of(tmp_path, train={"a": 1, "b": 1}, val={"a": 1})
    write(tmp_path / "val" / "b" / ".hidden.png")
    with pytest.raises(InputError, match=r"the class folder 'val/b' of .* has no images"):
        list_images(tmp_path)


def test_a_class_that_train_does_not_have_is_refused(tmp_path: Path) -> None:
    parts_of(tmp_path, train={"a": 1, "b": 1}, test={"c": 1})
    with pytest.raises(InputError, match=r"the class 'c' has images in test and none in train, such as test/c/0.png"):
        list_images(tmp_path)


def test_one_class_and_no_class_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "flat" / "1.png")
    with pytest.raises(InputError, match=r"flat has no class folders; put .*, such as .*flat/cat and .*flat/dog"):
        list_images(tmp_path / "flat")
    with pytest.raises(InputError, match="has one class, 'flat'"):
        list_images(tmp_path)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_a_link_that_leads_outside_is_refused_by_name(tmp_path: Path, what: str) -> None:
    outside = write(tmp_path / "secret" / "x.png")
    folder = write_classes(tmp_path / "images", {"a": 1, "b": 1})
    (folder / "a" / "way out").symlink_to(outside if what == "file" else outside.parent)
    with pytest.raises(InputError, match=r"the link a/way out leads to .*secret.*outside of .*images"):
        list_images(folder)


def test_a_link_that_leads_outside_and_nowhere_is_refused_too(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "images", {"a": 1, "b": 1})
    (folder / "train.png").symlink_to(tmp_path / "not there")
    with pytest.raises(InputError, match=r"the link train.png leads to"):
        list_images(folder)


def test_links_within_the_folder_are_followed_but_not_in_circles(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "images", {"a": 1, "b": 1})
    (folder / "b" / "twin.png").symlink_to(folder / "a" / "0.png")
    (folder / "b" / "nowhere").symlink_to(folder / "gone")
    (folder / "b" / "itself").symlink_to("itself")
    listing = list_images(folder)
    assert listing.names == ("a/0.png", "b/0.png", "b/twin.png")
    assert [name for name, _ in listing.bad] == ["b/itself", "b/nowhere"]
    (folder / "b" / "round").symlink_to(folder / "b")
    with pytest.raises(InputError, match=r"the link b/round of .* leads to a folder that it lies in"):
        list_images(folder)


def test_the_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    folder = write_classes(tmp_path / "images", {"a": 1, "b": 1})
    (tmp_path / "link").symlink_to(folder)
    assert list_images(tmp_path / "link").names == list_images(folder).names


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names or files")
def test_what_is_no_text_or_no_file_is_named_so_that_it_can_be_printed(tmp_path: Path) -> None:
    write_classes(tmp_path, {"a": 1, "b": 1})
    os.mkfifo(tmp_path / "a" / "pipe\x1b[31m")
    assert list_images(tmp_path).bad == (BadFile("a/pipe\x1b[31m", "is no ordinary file"),)
    write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff")) / "1.png")
    with pytest.raises(InputError, match=r"the folder '\\\\udcff' of .* has a name that is no text") as refused:
        list_images(tmp_path)
    assert str(refused.value).isprintable()


def test_what_is_no_source_is_told_what_is_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist; name a folder"):
        list_images(tmp_path / "gone")
    with pytest.raises(InputError, match=r"is no folder, .csv or .npz file; name a folder"):
        list_images(write(tmp_path / "images.zip"))
