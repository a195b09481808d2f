"""Array files come back as they were; whatever is wrong with one, the error names it and says what to do."""

import os
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.storage.arrays import read_array, read_arrays, write_array, write_arrays

ARRAY = np.random.default_rng(0).normal(size=(2, 1500)).astype(np.float32)
NAMED = {"a/b": ARRAY, "c": ARRAY > 0}


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """An array, and named arrays."""
    write_array(tmp_path / "single", ARRAY)
    write_arrays(tmp_path / "named", NAMED)
    return tmp_path / "single", tmp_path / "named"


def test_arrays_come_back(files: tuple[Path, Path]) -> None:
    single, named = files
    np.testing.assert_array_equal(read_array(single, ""), ARRAY, strict=True)
    found = read_arrays(named, "")
    assert found.keys() == NAMED.keys()
    for name, array in NAMED.items():
        np.testing.assert_array_equal(found[name], array, strict=True)


def test_a_failure_leaves_the_old_files(files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    single, named = files
    before = [path.read_bytes() for path in files]
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_array(single, -ARRAY)
    with pytest.raises(OSError, match="disk full"):
        write_arrays(named, {"a/b": -ARRAY})
    assert [path.read_bytes() for path in files] == before


@pytest.mark.parametrize("damage", ["missing", "empty", "cut short", "foreign"])
def test_a_damaged_file_is_named_with_its_remedy(files: tuple[Path, Path], damage: str) -> None:
    single, named = files
    for path in files:
        half = path.read_bytes()[: path.stat().st_size // 2]
        path.unlink()
        if damage != "missing":
            path.write_bytes({"empty": b"", "cut short": half, "foreign": b"another program's"}[damage])
    with pytest.raises(InputError, match=r"single is missing or damaged \(.*\); make it again$"):
        read_array(single, "make it again")
    with pytest.raises(InputError, match=r"named is missing or damaged \(.*\); make it again$"):
        read_arrays(named, "make it again")


@pytest.mark.parametrize("start", [100, 5000])
def test_damage_inside_a_compressed_file_is_noticed(files: tuple[Path, Path], start: int) -> None:
    _, named = files
    whole = named.read_bytes()
    named.write_bytes(whole[:start] + bytes([255] * 80) + whole[start + 80 :])
    with pytest.raises(InputError, match="named is missing or damaged"):
        read_arrays(named, "make it again")
