"""NumPy files that are either complete or absent; one that cannot be read raises an error that names it and says what
to do.
"""

import io
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from counterpoint.errors import InputError, shown
from counterpoint.storage.files import write_atomically
from counterpoint.storage.npz import read_all, read_header

_DAMAGE = (OSError, ValueError, EOFError, OverflowError, MemoryError)


def write_array(path: Path, array: np.ndarray) -> None:
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    write_atomically(path, content.getvalue())


def write_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Named arrays as one compressed file."""
    content = io.BytesIO()
    np.savez_compressed(content, allow_pickle=False, **arrays)
    write_atomically(path, content.getvalue())


def read_array(path: Path, remedy: str) -> np.ndarray:
    """The array that `write_array` wrote; the error ends with `remedy`."""
    try:
        with path.open("rb") as file:
            header = read_header(file)
            header.check(os.fstat(file.fileno()).st_size - file.tell())
            array: np.ndarray = np.fromfile(file, header.dtype, math.prod(header.shape))
        return array.reshape(header.shape, order="F" if header.fortran else "C")
    except _DAMAGE as error:
        raise _damaged(path, error, remedy) from None


def read_shape(path: Path, remedy: str) -> tuple[int, ...]:
    """The shape of the array that `write_array` wrote, without its values; the error ends with `remedy`."""
    try:
        with path.open("rb") as file:
            return read_header(file).shape
    except _DAMAGE as error:
        raise _damaged(path, error, remedy) from None


def read_arrays(path: Path, remedy: str) -> dict[str, np.ndarray]:
    """All the arrays that `write_arrays` wrote; the error ends with `remedy`. They cannot be written to."""
    try:
        return read_all(path)
    except InputError as error:
        raise _damaged(path, error, remedy) from None


def _damaged(path: Path, error: Exception, remedy: str) -> InputError:
    return InputError(f"{path} is missing or damaged ({shown(error, 200)}); {remedy}")
