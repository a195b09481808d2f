"""split.npz in a run's folder: which of a user's own images the run trains on, and which were split off them."""

from pathlib import Path

import numpy as np

from counterpoint.errors import InputError
from counterpoint.images.listing import PARTS
from counterpoint.images.splits import Split
from counterpoint.storage.arrays import read_arrays, write_arrays

SPLIT = "split.npz"
_HASH_BYTES = 32


def write_split(folder: Path, split: Split) -> None:
    """Keep hashes, and no names: nobody should learn from a run's folder what somebody's files are called."""
    contents = np.frombuffer(bytes.fromhex("".join(split.contents)), np.uint8).reshape(-1, _HASH_BYTES)
    parts = np.array([PARTS.index(part) for part in split.parts], np.uint8)
    write_arrays(folder / SPLIT, {"contents": contents, "parts": parts, "classes": np.array(split.classes)})


def read_split(folder: Path) -> Split | None:
    """The split of a run; None where there is none, as of runs that an earlier version began."""
    path = folder / SPLIT
    if not path.exists():
        return None
    remedy = "remove it; the images must then be those that the run was begun with"
    arrays = read_arrays(path, remedy)
    found = [arrays[name] for name in ("contents", "parts", "classes") if name in arrays]
    if len(found) < 3 or not _are_a_split(*found):
        raise InputError(f"{path} is no list of images and their parts; {remedy}")
    contents, parts, classes = found
    return Split(
        tuple(row.tobytes().hex() for row in contents),
        tuple(PARTS[part] for part in parts.tolist()),
        tuple(classes.tolist()),
    )


def _are_a_split(contents: np.ndarray, parts: np.ndarray, classes: np.ndarray) -> bool:
    if not contents.dtype == parts.dtype == np.uint8 or not parts.ndim == classes.ndim == 1:
        return False
    are_parts = contents.shape == (len(parts), _HASH_BYTES) and bool((parts < len(PARTS)).all())
    return are_parts and classes.dtype.kind == "U"
