import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.images import list_images
from counterpoint.images.archives import read_rows

IMAGES = np.random.default_rng(0).integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)


def archive(folder: Path, **arrays: Any) -> Path:
    path = folder / "set.npz"
    np.savez_compressed(path, **arrays)
    return path


def test_texts_are_classes_in_sorted_order(tmp_path: Path) -> None:
    listing = list_images(archive(tmp_path, images=IMAGES, labels=["猫", "b", "a", "b"]))
    assert listing.classes == ("a", "b", "猫")
    assert listing.labels == (2, 1, 0, 1)
    assert listing.parts is None
    assert [listing.shown(image) for image in (0, 3)] == ["set.npz[0]", "set.npz[3]"]


def test_numbers_are_classes_by_size_or_places_among_the_names(tmp_path: Path) -> None:
    numbers = np.array([10, 2, 10, 9], np.uint8)
    listing = list_images(archive(tmp_path, images=IMAGES, labels=numbers))
    assert listing.classes == ("2", "9", "10")
    assert listing.labels == (2, 0, 2, 1)
    listing = list_images(archive(tmp_path, images=IMAGES, labels=[1, 0, 1, 0], classes=["z", "a"]))
    assert (listing.classes, listing.labels) == (("z", "a"), (1, 0, 1, 0))
    listing = list_images(archive(tmp_path, images=IMAGES, labels=["a", "z", "z", "a"], classes=["z", "a"]))
    assert (listing.classes, listing.labels) == (("z", "a"), (1, 0, 0, 1))


def test_parts_are_read(tmp_path: Path) -> None:
    parts = ["train", "train", "val", "test"]
    assert list_images(archive(tmp_path, images=IMAGES, labels=[0, 1, 0, 1], part=parts)).parts == tuple(parts)


def test_parts_of_another_name_are_not_ignored(tmp_path: Path) -> None:
    given = {"images": IMAGES, "labels": [0, 1, 0, 1]}
    split = ["train", "train", "Validation", "test"]
    message = r"the array 'split' of .*set\.npz has the values Validation, test, train; .* call it part and its values"
    with pytest.raises(InputError, match=message):
        list_images(archive(tmp_path, **given, split=split))
    assert list_images(archive(tmp_path, **given, split=split, part=["train"] * 4)).parts == ("train",) * 4
    for other in (["red", "train", "test", "blue"], ["train"] * 4, [1, 2, 3, 4], ["train", "test"]):
        assert list_images(archive(tmp_path, **given, other=other)).parts is None


@pytest.mark.parametrize("images", [IMAGES, IMAGES[..., :1], IMAGES[..., 0]], ids=["colour", "one channel", "grey"])
@pytest.mark.parametrize("at_once", [1, 3, 4, 9])
def test_rows_are_read_some_at_a_time(tmp_path: Path, images: np.ndarray, at_once: int) -> None:
    pieces = list(read_rows(archive(tmp_path, images=np.ascontiguousarray(images), labels=[0, 1, 0, 1]), at_once))
    assert [len(piece) for piece in pieces] == [min(at_once, 4 - start) for start in range(0, 4, at_once)]
    assert np.array_equal(np.concatenate(pieces), images if images.ndim == 4 else images[..., None])


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"labels": [0, 1]}, "has no array 'images'"),
        ({"images": IMAGES}, "has no array 'labels'"),
        ({"images": IMAGES / 255, "labels": [0, 1, 0, 1]}, r"is float64 \(4, 6, 5, 3\); it must be uint8 \(N, H, W\)"),
        ({"images": IMAGES[0, 0], "labels": [0, 1, 0, 1]}, r"is uint8 \(5, 3\)"),
        ({"images": IMAGES.transpose(0, 3, 1, 2).copy(), "labels": [0, 1, 0, 1]}, "1, 3 or 4 channels last"),
        ({"images": np.asfortranarray(IMAGES), "labels": [0, 1, 0, 1]}, "column by column.*ascontiguousarray"),
        ({"images": IMAGES[:0], "labels": []}, "holds no pixels"),
        (
            {"images": IMAGES, "labels": [0, 1]},
            r"'labels' of .* has the shape \(2,\); it must have one entry for each of the 4 images",
        ),
        ({"images": IMAGES, "labels": [0.0, 1, 0, 1]}, "'labels' of .* is float64; it must be whole numbers or texts"),
        ({"images": IMAGES, "labels": [0, 1, 0, 2], "classes": ["a", "b"]}, "has 2, which is not one of its 2 classes"),
        ({"images": IMAGES, "labels": [-1, 1, 0, 1], "classes": ["a", "b"]}, "has -1, which is not one of"),
        ({"images": IMAGES, "labels": list("abac"), "classes": ["a", "b"]}, "has 'c', which is not one of"),
        ({"images": IMAGES, "labels": [0, 1, 0, 1], "classes": ["a", "a"]}, "must be a list of different names"),
        ({"images": IMAGES, "labels": [0, 1, 0, 1], "part": ["train"] * 3 + ["dev"]}, "unknown part 'dev'"),
        ({"images": IMAGES, "labels": [0, 1, 0, 1], "part": ["train"]}, r"'part' of .* has the shape \(1,\)"),
        ({"images": IMAGES, "labels": [0, 1, 0, 1], "group": [1]}, r"'group' of .* has the shape \(1,\)"),
        ({"images": IMAGES, "labels": [0, 1, 0, 1], "group": [0.5] * 4}, r"'group' of .* is float64; it must be whole"),
        ({"images": IMAGES, "labels": [5] * 4}, "has one class, '5'"),
        ({"images": IMAGES, "labels": [0, 1, 1, 1], "classes": ["a", "b", "c"]}, "the class 'c' of .* has no images"),
    ],
)
def test_what_is_no_set_of_images_is_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        list_images(archive(tmp_path, **arrays))


class Trap:
    """Unpickling it would write a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("sprung", "w"))


@pytest.mark.parametrize("name", ["images", "labels", "part", "classes"])
def test_python_objects_are_refused_and_never_unpickled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    arrays: dict[str, Any] = {"images": IMAGES, "labels": [0, 1, 0, 1], name: np.array([Trap()] * 4, object)}
    with pytest.raises(InputError, match=rf"{name}.* (is object|no Python objects are read)"):
        list_images(archive(tmp_path, **arrays))
    assert not (tmp_path / "sprung").exists()


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = archive(tmp_path, images=IMAGES, labels=[0, 1, 0, 1])
    whole = path.read_bytes()
    for damage in (b"", b"PK\3\4 no archive", whole[: len(whole) // 2]):
        path.write_bytes(damage)
        with pytest.raises(InputError, match=r"is damaged or is not an .npz file"):
            list_images(path)


def test_an_array_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "set.npz"
    np.save(tmp_path / "images.npy", IMAGES)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("images.npy", (tmp_path / "images.npy").read_bytes()[:-1])
    with pytest.raises(InputError, match="is cut short: 'images' ends before row 4"):
        list(read_rows(path, 2))
