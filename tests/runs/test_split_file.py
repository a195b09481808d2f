"""What a run keeps of the split of a user's own images, and what of a file that somebody has changed."""

from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.images.splits import Split
from counterpoint.runs.split_file import read_split, write_split
from counterpoint.storage.arrays import write_arrays

CONTENTS = np.arange(96, dtype=np.uint8).reshape(3, 32)
GOOD = {"contents": CONTENTS, "parts": np.array([0, 2, 1], np.uint8), "classes": np.array(["Füße", "b"])}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    split = Split(tuple(row.tobytes().hex() for row in CONTENTS), ("train", "test", "val"), ("Füße", "b"))
    write_split(tmp_path, split)
    assert read_split(tmp_path) == split
    assert split.of("test") == (split.contents[1],)


def test_a_run_without_one_has_none(tmp_path: Path) -> None:
    assert read_split(tmp_path) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"contents": CONTENTS[:2]},
        {"contents": CONTENTS[:, :31]},
        {"contents": CONTENTS.astype(np.int64)},
        {"parts": np.array([0, 3, 1], np.uint8)},
        {"parts": np.array([0.0, 1.0, 2.0])},
        {"parts": np.array(0, np.uint8)},
        {"classes": np.array([1, 2])},
        {"classes": np.array([["a", "b"]])},
    ],
)
def test_a_file_of_another_kind_is_refused(tmp_path: Path, wrong: dict[str, np.ndarray]) -> None:
    write_arrays(tmp_path / "split.npz", GOOD | wrong)
    with pytest.raises(InputError, match=r"split\.npz is no list of images and their parts; remove it"):
        read_split(tmp_path)


@pytest.mark.parametrize("name", list(GOOD))
def test_a_missing_array_is_refused(tmp_path: Path, name: str) -> None:
    write_arrays(tmp_path / "split.npz", {key: array for key, array in GOOD.items() if key != name})
    with pytest.raises(InputError, match=r"split\.npz is no list of images and their parts"):
        read_split(tmp_path)


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "split.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"split\.npz is missing or damaged .* remove it; the images must then be"):
        read_split(tmp_path)
