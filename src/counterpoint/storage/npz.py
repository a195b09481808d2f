"""Read the arrays of an .npz file from a stranger: none is unpickled, and none gets more memory than it needs."""

import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import IO

import numpy as np

from counterpoint.errors import InputError

MOST_BYTES = 8 << 30
"""Of one array."""

_DAMAGE = (
    OSError,
    ValueError,
    EOFError,
    MemoryError,
    OverflowError,
    RuntimeError,
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
)
_VERSIONS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those of NumPy


@dataclass(frozen=True)
class Header:
    """What an array's file says of it."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def check(self, held: int) -> None:
        """Raise ValueError, before memory is taken, unless the values are plain and take the `held` bytes there are."""
        if self.dtype.hasobject:
            raise ValueError("no Python objects are read, since they can run code")
        if min(self.shape, default=0) < 0 or self.nbytes != held:
            raise ValueError(
                f"it claims to be {self.dtype} {self.shape}, which are {self.nbytes:,} bytes, and the file has "
                f"{held:,} for it"
            )


def array_names(source: Path) -> tuple[str, ...]:
    """The names of all arrays."""
    with _whole(source), zipfile.ZipFile(source) as archive:
        return _names(source, archive)


@contextmanager
def open_array(source: Path, name: str) -> Iterator[IO[bytes]]:
    """The array's file in the archive, to be read piece by piece. NumPy would read the whole array at once."""
    with _whole(source), zipfile.ZipFile(source) as archive, archive.open(_info(source, archive, name)) as file:
        yield file


_parsing = Lock()
"""NumPy parses a header as Python. CPython 3.11 counts how deep its parser is for all threads together, so that two at
once can fail with "AST constructor recursion depth mismatch"."""


def read_header(file: IO[bytes]) -> Header:
    """What stands before the values. The file is at the first of them then."""
    version = np.lib.format.read_magic(file)
    if version not in _VERSIONS:
        raise ValueError(f"it is of version {version} of NumPy's format, which counterpoint cannot read")
    try:
        with _parsing:
            return Header(*_VERSIONS[version](file))
    except Exception as error:  # NumPy parses it as Python, which can raise almost anything
        raise ValueError(f"its header cannot be read: {error}") from None


def read_named(source: Path, name: str) -> np.ndarray:
    """A whole array, which cannot be written to. A header that claims what the file does not hold is refused."""
    with _whole(source), zipfile.ZipFile(source) as archive:
        return _read(source, archive, name)


def read_all(source: Path) -> dict[str, np.ndarray]:
    """All arrays, each as `read_named` reads it. The archive is opened once, since its list of files may be long."""
    with _whole(source), zipfile.ZipFile(source) as archive:
        return {name: _read(source, archive, name) for name in _names(source, archive)}


def _names(source: Path, archive: zipfile.ZipFile) -> tuple[str, ...]:
    names = archive.namelist()
    for name in names:
        if not name.endswith(".npy"):
            raise InputError(f"{source} holds {name!r}, which is no array; write it with numpy.savez")
        if names.count(name) > 1:
            raise InputError(f"{source} holds {name.removesuffix('.npy')!r} twice; each array must be there once")
    return tuple(name.removesuffix(".npy") for name in names)


def _read(source: Path, archive: zipfile.ZipFile, name: str) -> np.ndarray:
    called = f"{name!r} of {source}"
    info = _info(source, archive, name)
    with archive.open(info) as file:
        header = read_header(file)
        _check(called, header, info.file_size - file.tell())
        content = file.read()
    if len(content) < header.nbytes:
        raise InputError(f"{called} is cut short; make the file again")
    return np.ndarray(header.shape, header.dtype, content, order="F" if header.fortran else "C")


def _check(called: str, header: Header, held: int) -> None:
    try:
        header.check(held)
    except ValueError as problem:
        raise InputError(f"{called} cannot be read: {problem}; make the file again") from None
    if header.nbytes > MOST_BYTES:
        raise InputError(f"{called} has {header.nbytes:,} bytes; an array may have {MOST_BYTES:,} at most")


def _info(source: Path, archive: zipfile.ZipFile, name: str) -> zipfile.ZipInfo:
    try:
        info = archive.getinfo(f"{name}.npy")
    except KeyError:
        names = ", ".join(repr(one.removesuffix(".npy")) for one in archive.namelist())
        raise InputError(f"{source} has no array {name!r}; it has {names or 'none'}") from None
    if info.compress_type not in _METHODS:
        raise InputError(
            f"{name!r} of {source} is compressed in a way that NumPy does not know; write it with numpy.savez"
        )
    return info


@contextmanager
def _whole(source: Path) -> Iterator[None]:
    try:
        yield
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError(f"{source} does not exist") from None
    except IsADirectoryError:
        raise InputError(f"{source} is a folder, and an .npz file is needed; give the path of the file") from None
    except _DAMAGE as error:
        raise InputError(f"{source} is damaged or is not an .npz file ({error}); write it with numpy.savez") from None
