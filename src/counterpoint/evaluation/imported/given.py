"""Named arrays as they were given: in an .npz file, or in Python."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from counterpoint.errors import InputError
from counterpoint.storage.npz import array_names, read_named


@dataclass(frozen=True, eq=False)
class Given:
    """The arrays' names, and how to read one of them."""

    names: tuple[str, ...]
    read: Callable[[str], np.ndarray]
    file: Path | None
    sha256: str

    def called(self, name: str) -> str:
        """An array, as a message names it."""
        return f"{name!r} of {self.file}" if self.file else repr(name)

    def wrong(self, problem: str) -> InputError:
        """The error for what is not about one array."""
        return InputError(f"{self.file}: {problem}" if self.file else problem)


def given_file(path: Path) -> Given:
    """An .npz file. Each array is read when it is needed, so that memory holds one at a time."""
    names = array_names(path)
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Given(names, partial(read_named, path), path, digest)


def given_arrays(arrays: Mapping[str, ArrayLike]) -> Given:
    """Arrays in memory, or what NumPy makes arrays of."""
    found = {name: _array(name, values) for name, values in arrays.items()}
    digest = hashlib.sha256()
    for name, array in sorted(found.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape} ".encode())
        digest.update(np.ascontiguousarray(array).data)
    return Given(tuple(found), found.__getitem__, None, digest.hexdigest())


def _array(name: str, values: ArrayLike) -> np.ndarray:
    if not isinstance(name, str):
        raise InputError(f"an array is named {name!r}; names are texts, such as 'probs' and 'labels'")
    if np.ma.is_masked(values):
        raise InputError(f"{name!r} is a masked array; the figures would count what it hides: leave these images out")
    if hasattr(values, "detach"):  # a tensor of a training loop, on any device
        tensor: Any = values.detach().cpu()
        values = tensor.float() if "bfloat16" in str(tensor.dtype) else tensor  # NumPy has no bfloat16
    try:
        array = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as problem:
        raise InputError(f"{name!r} cannot be read as an array: {problem}") from None
    if array.dtype.hasobject:
        raise InputError(f"{name!r} holds Python objects; it must be an array of numbers, or of texts")
    return array
