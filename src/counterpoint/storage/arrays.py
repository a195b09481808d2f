"""NumPy files that are whole or absent; one that cannot be read raises an error that names it and says what to do."""

import io
import zlib
from collections.abc import Mapping
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from counterpoint.errors import InputError
from counterpoint.storage.files import write_atomically

_DAMAGE = (OSError, ValueError, EOFError, BadZipFile, zlib.error)


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
        array: np.ndarray = np.load(path, allow_pickle=False)
    except _DAMAGE as error:
        raise _damaged(path, error, remedy) from None
    return array


def read_arrays(path: Path, remedy: str) -> dict[str, np.ndarray]:
    """All the arrays that `write_arrays` wrote; the error ends with `remedy`."""
    try:
        # NumPy would not close a damaged file that it opened itself.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return dict(archive)
    except (*_DAMAGE, AttributeError, TypeError) as error:  # the last two for a single array
        raise _damaged(path, error, remedy) from None


def _damaged(path: Path, error: Exception, remedy: str) -> InputError:
    return InputError(f"{path} is missing or damaged ({error}); {remedy}")
