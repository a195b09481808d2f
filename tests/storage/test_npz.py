import io
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.storage import npz
from counterpoint.storage.npz import array_names, open_array, read_header, read_named
from counterpoint.threads import in_threads


def archive(folder: Path, **arrays: Any) -> Path:
    path = folder / "a.npz"
    np.savez_compressed(path, **arrays)
    return path


def npy(array: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.save(content, array)
    return content.getvalue()


def claiming(folder: Path, descr: str, shape: object, held: int, name: str = "a") -> Path:
    """An array whose header claims a shape, with so many bytes of values."""
    content = io.BytesIO()
    np.lib.format.write_array_header_1_0(content, {"descr": descr, "fortran_order": False, "shape": shape})
    path = folder / "claims.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(f"{name}.npy", content.getvalue() + bytes(held))
    return path


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24.0).reshape(2, 3, 4),
        np.asfortranarray(np.arange(12, dtype=">i2").reshape(3, 4)),
        np.zeros((0, 3), np.float32),
        np.array("ein Name"),
        np.array(["猫", "dog"]),
        np.array(""),
        np.array(3.5),
        np.array([True, False]),
    ],
    ids=lambda array: f"{array.dtype} {array.shape}",
)
def test_an_array_is_read_as_numpy_reads_it(tmp_path: Path, array: np.ndarray) -> None:
    path = archive(tmp_path, other=1, array=array)
    assert array_names(path) == ("other", "array")
    found = read_named(path, "array")
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert np.array_equal(found, array)


def test_an_array_can_be_read_piece_by_piece(tmp_path: Path) -> None:
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    with open_array(archive(tmp_path, array=array), "array") as file:
        header = read_header(file)
        assert (header.shape, header.fortran, header.dtype, header.nbytes) == ((2, 3), False, np.dtype(np.uint8), 6)
        assert file.read(2) == b"\0\1"
        assert file.read() == bytes([2, 3, 4, 5])


@pytest.mark.parametrize(
    ("shape", "held", "message"),
    [
        ((10**9, 10**6), 80, r"'a' of .* claims to be float64 .*8,000,000,000,000,000 bytes, and the file has 80"),
        ((10,), 79, "which are 80 bytes, and the file has 79 for it"),
        ((10,), 81, "which are 80 bytes, and the file has 81 for it"),
        ((-10,), 80, "claims to be"),
        ((-2, -5), 80, "claims to be"),
    ],
)
def test_a_claim_is_checked_before_memory_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: object, held: int, message: str
) -> None:
    path = claiming(tmp_path, "<f8", shape, held)
    monkeypatch.setattr(np, "ndarray", lambda *_: pytest.fail("memory was taken"))
    with pytest.raises(InputError, match=message):
        read_named(path, "a")


def test_an_array_that_is_too_large_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = claiming(tmp_path, "<f8", (1000,), 8000)
    monkeypatch.setattr(npz, "MOST_BYTES", 7999)
    read, whole = zipfile.ZipExtFile.read, []

    def counted(file: zipfile.ZipExtFile, n: int | None = -1) -> bytes:
        whole.append(n is None or n < 0)
        return read(file, n)

    monkeypatch.setattr(zipfile.ZipExtFile, "read", counted)
    with pytest.raises(InputError, match="has 8,000 bytes; an array may have 7,999 at most"):
        read_named(path, "a")
    assert not any(whole)
    monkeypatch.setattr(npz, "MOST_BYTES", 8000)
    read_named(path, "a")
    assert any(whole)


def test_a_size_that_the_archive_lies_about_is_a_short_array(tmp_path: Path) -> None:
    path = claiming(tmp_path, "<f8", (1000,), 8000)
    whole = path.read_bytes()
    size = (8128).to_bytes(4, "little")
    assert whole.count(size) == 2  # before the content and in the list at the end
    path = claiming(tmp_path, "<f8", (10**6,), 8000)
    path.write_bytes(path.read_bytes().replace(size, (8 * 10**6 + 128).to_bytes(4, "little")))
    with pytest.raises(InputError, match=r"cut short|is damaged or is not an .npz file"):
        read_named(path, "a")


class Trap:
    """Unpickling it would write a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (open, ("sprung", "w"))


@pytest.mark.parametrize("array", [np.array([Trap()], object), np.array([(1, Trap())], [("a", "i4"), ("b", "O")])])
def test_python_objects_are_never_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, array: np.ndarray) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"'labels' of .*: no Python objects are read, since they can run code"):
        read_named(archive(tmp_path, labels=array), "labels")
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    whole = archive(tmp_path, array=np.arange(1000)).read_bytes()
    path = tmp_path / "damaged.npz"
    for damage in (b"", b"PK\3\4 no archive", whole[: len(whole) // 2], npy(np.arange(3)), b"label,score\n1,0.5\n"):
        path.write_bytes(damage)
        with pytest.raises(InputError, match=r"damaged.npz is damaged or is not an .npz file"):
            array_names(path)
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 255
    path.write_bytes(flipped)
    with pytest.raises(InputError, match=r"damaged.npz is damaged or is not an .npz file"):
        read_named(path, "array")
    with pytest.raises(InputError, match=r"nowhere.npz does not exist"):
        array_names(tmp_path / "nowhere.npz")


def test_what_numpy_would_not_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.npz"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("notes.txt", "hello")
    with pytest.raises(InputError, match=r"holds 'notes.txt', which is no array"):
        array_names(path)
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a.npy", npy(np.arange(3)))
        with pytest.warns(UserWarning, match="Duplicate name"):
            made.writestr("a.npy", npy(np.arange(4)))
    with pytest.raises(InputError, match="holds 'a' twice"):
        array_names(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as made:
        made.writestr("a.npy", npy(np.arange(3)))
    with pytest.raises(InputError, match=r"'a' of .* is compressed in a way that NumPy does not know"):
        read_named(path, "a")
    with pytest.raises(InputError, match="has no array 'b'; it has 'a'"):
        read_named(path, "b")


def test_one_header_is_parsed_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python's parser may fail in two threads at once."""
    content = io.BytesIO()
    np.save(content, np.zeros(3))
    at_once, most = 0, 0

    def parse(file: Any) -> Any:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        time.sleep(0.01)
        at_once -= 1
        return np.lib.format.read_array_header_1_0(file)

    monkeypatch.setitem(npz._VERSIONS, (1, 0), parse)
    headers = list(in_threads(lambda _: read_header(io.BytesIO(content.getvalue())), range(8)))
    assert [header.shape for header in headers] == 8 * [(3,)]
    assert most == 1
