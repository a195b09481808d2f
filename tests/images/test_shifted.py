"""Which images a shift has: classes, severities, and the same pictures at each severity."""

from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.images.shifted import ShiftedListing, list_shifted

CLASSES = ("cat", "dog", "owl")
DIGITS = tuple("0123456789")


def write(folder: Path, *names: str) -> Path:
    """Files that are listed and not opened."""
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"")
    return folder


def names_of(found: ShiftedListing) -> list[list[str]]:
    places = found.by_severity(found.listing)
    return [[found.listing.names[image] for image in of_severity] for of_severity in places]


def test_class_folders_have_the_places_of_the_runs_classes(tmp_path: Path) -> None:
    found = list_shifted(write(tmp_path, "owl/a.png", "cat/deep/b.jpg", ".hidden/c.png"), CLASSES)
    assert found.severities == 0
    assert found.listing.names == ("cat/deep/b.jpg", "owl/a.png")
    assert found.listing.labels == (0, 2)
    assert found.listing.classes == CLASSES
    assert names_of(found) == [["cat/deep/b.jpg", "owl/a.png"]]


def test_pictures_in_no_class_folder_are_refused_once_and_for_all(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no class folders; put .*, such as .*cat and .*dog"):
        list_shifted(write(tmp_path, "a.png", "b.png"), CLASSES)


def test_severities_have_the_same_pictures_in_the_same_order_whatever_their_endings(tmp_path: Path) -> None:
    found = list_shifted(write(tmp_path, "1/dog/b.png", "1/cat/a.png", "2/cat/a.jpg", "2/dog/b.webp"), CLASSES)
    assert found.severities == 2
    assert names_of(found) == [["1/cat/a.png", "1/dog/b.png"], ["2/cat/a.jpg", "2/dog/b.webp"]]
    without_one = found.listing.select([0, 2, 3])
    assert [len(of_severity) for of_severity in found.by_severity(without_one)] == [1, 1], "bad at one, left out of all"


def test_ten_severities_come_by_number(tmp_path: Path) -> None:
    found = list_shifted(write(tmp_path, *(f"{severity}/cat/a.png" for severity in range(1, 11))), CLASSES)
    assert names_of(found)[9] == ["10/cat/a.png"]


@pytest.mark.parametrize(
    ("names", "severities"),
    [
        (["1/a.png", "2/b.png"], 0),
        (["1/3/a.png", "2/3/a.png"], 2),
        (["1/a.png", "1/3/b.png"], 0),
        (["1/scans/a.png", "2/scans/a.png"], 0),
        (["0/3/a.png", "1/3/a.png"], 0),
    ],
)
def test_where_classes_are_called_1_and_2_the_folders_in_them_decide(
    tmp_path: Path, names: list[str], severities: int
) -> None:
    assert list_shifted(write(tmp_path, *names), DIGITS).severities == severities


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["cow/a.png"], r"unknown class 'cow'.* \(known: cat, dog, owl\).*rename it, or leave it out"),
        (["1/cat/a.png", "2/cow/a.png"], r"the folder '2/cow'.*unknown class 'cow'"),
        (["test/cat/a.png"], r"a shift has no parts: name .*test itself"),
        (["1/cat/a.png", "more/cat/a.png"], r"unknown class '1'.*1, 2, 3, … and no others"),
        (["1/cat/a.png", "3/cat/a.png"], r"has the severities 1, 3 and lacks 2; severities count from 1"),
        (
            ["1/cat/a.png", "1/cat/b.png", "2/cat/a.png", "2/dog/c.png"],
            r"\(1 lacks dog/c; 2 lacks cat/b\).*such as NAME-1=.*1",
        ),
        (["1/cat/a.png", "1/cat/a.jpg", "2/cat/a.png"], r"1/cat/a.jpg and 1/cat/a.png .*differ only in their endings"),
    ],
)
def test_what_is_no_shift_of_the_run_is_named(tmp_path: Path, names: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        list_shifted(write(tmp_path, *names), CLASSES)


def test_a_path_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone does not exist; name a folder with one folder of images per class"):
        list_shifted(tmp_path / "gone", CLASSES)


def test_a_class_that_only_unicode_tells_apart_is_explained(tmp_path: Path) -> None:
    composed, apart = "V\u00f6gel", "Vo\u0308gel"
    with pytest.raises(InputError, match=r"looks like one of the run, but Unicode writes it in other characters \(NFC"):
        list_shifted(write(tmp_path, f"{apart}/a.png"), ("cat", composed))


def test_files_name_the_runs_classes_too(tmp_path: Path) -> None:
    table, archive = tmp_path / "list.csv", tmp_path / "rows.npz"
    table.write_text("path,label\na.png,owl\nb.png,cat\n")
    assert list_shifted(table, CLASSES).listing.labels == (2, 0)
    np.savez(archive, images=np.zeros((2, 4, 4), np.uint8), labels=[1, 0], classes=["dog", "owl"])
    assert list_shifted(archive, CLASSES).listing.labels == (2, 1)
    np.savez(archive, images=np.zeros((2, 4, 4), np.uint8), labels=[1, 0])
    with pytest.raises(InputError, match=r"a label of .*unknown class '0'"):
        list_shifted(archive, CLASSES)
    table.write_text("path,label,part\na.png,owl,test\n")
    with pytest.raises(InputError, match="a shift has no parts; leave part out"):
        list_shifted(table, CLASSES)
