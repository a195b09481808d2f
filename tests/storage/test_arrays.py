"""Array files come back as they were; whatever is wrong with one, the error names it and says what to do."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.storage.arrays import read_array, read_arrays, read_shape, write_array, write_arrays

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


def claiming(shape: object, descr: object = "<f4", content: bytes = b"") -> bytes:
    """A .npy file whose header says this."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + content


HOSTILE = {
    "146 TiB": claiming((200, 200, 1_000_000, 1_000)),
    "4 TiB of text": claiming((10**6,), "<U1000000"),
    "more than 64 bits": claiming((10**30,)),
    "nothing, very often": claiming((10**30,), "<U0"),
    "a negative size": claiming((-3, 4)),
    "objects": claiming((1,), "|O", b"cos\nsystem\n(S'true'\ntR."),
    "more than there is": claiming((4,), content=bytes(12)),
    "less than there is": claiming((2,), content=bytes(12)),
    "code": b"\x93NUMPY\x01\x00\x18\x00__import__('os').abort()",
    "brackets": b"\x93NUMPY\x02\x00" + (200_000).to_bytes(4, "little") + b"(" * 200_000,
    "no version": b"\x93NUMPY\x09\x00" + bytes(100),
    "no shape": claiming("abc"),
    "no type": claiming((1,), "zzz"),
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_header_that_claims_what_is_not_there_takes_no_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(HOSTILE[name])
    for read in (read_array, read_arrays):
        with pytest.raises(InputError, match=r"x.npy is missing or damaged \((.|\n)*\); make it again"):
            read(path, "make it again")


def test_the_shape_is_read_without_the_values(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    write_array(path, np.zeros((3, 4)))
    path.write_bytes(path.read_bytes()[:-1])
    assert read_shape(path, "") == (3, 4)


@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_comes_back_writable_and_in_its_order(tmp_path: Path, order: Any) -> None:
    array = np.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), order=order)
    write_array(tmp_path / "x.npy", array)
    found = read_array(tmp_path / "x.npy", "")
    assert np.array_equal(found, array)
    found[0, 0] = 9
