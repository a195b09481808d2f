"""A corrupted set on disk, in the official layout, and where it comes from.

There is one .npy file per corruption, uint8 (5 · images, rows, columns, channels), with severity 1 first. labels.npy
holds the labels five times. A set made here also has about.json; the official sets have none.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from uuid import uuid4

import numpy as np

from counterpoint.corrupt.frost import FrostSource
from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import SEVERITIES, check_cell
from counterpoint.errors import InputError
from counterpoint.records.images import Constants
from counterpoint.storage.files import check_folder_path, leftovers, write_json
from counterpoint.storage.locks import shared


@dataclass(frozen=True)
class About:
    """What a set of corrupted images says of itself in its about.json: what it was made of, and how.

    >>> from counterpoint.corrupt import About
    >>> About("digits", images_md5="…", seed=0, version="1", frost="texture").constants
    'cifar-c'
    """

    dataset: str
    images_md5: str
    seed: int
    version: str  # of the generator
    frost: FrostSource
    finished: dict[str, str] = field(default_factory=dict)  # the md5 of the file of each corruption that is complete
    constants: Constants = "cifar-c"  # the only ones when this was not recorded yet


def read_cell(folder: Path | str, name: str, severity: int, n_images: int) -> Images:
    """The images of one cell of a set on disk, memory-mapped and read-only.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint.corrupt import read_cell, write_corrupted_set
    >>> images = np.full((2, 8, 8, 3), 128, np.uint8)
    >>> write_corrupted_set(images, np.array([0, 1]), Path("mine-C"), dataset="mine", names=["contrast"])
    >>> read_cell(Path("mine-C"), "contrast", severity=5, n_images=2).shape
    (2, 8, 8, 3)
    """
    check_cell(name, severity)
    path = Path(folder) / f"{name}.npy"
    if not path.is_file():
        raise InputError(f"{path} is missing; make it with `counterpoint corrupt`, or unpack the official set there")
    try:
        images = np.lib.format.open_memmap(path, mode="r")
    except (ValueError, OverflowError, EOFError) as error:
        raise InputError(f"{path} is damaged or cut short ({error}); remove it and make or unpack it again") from error
    rows = len(SEVERITIES) * n_images
    if images.dtype != np.uint8 or images.ndim != 4 or len(images) != rows:
        raise InputError(
            f"{path} holds {images.dtype} {images.shape}; "
            f"for {n_images} images it must hold uint8 ({rows}, rows, columns, channels)"
        )
    return images[(severity - 1) * n_images : severity * n_images]


def read_about(folder: Path | str) -> About | None:
    """What a set of corrupted images says of itself; None for an official set and for an empty or missing folder.

    >>> from pathlib import Path
    >>> from counterpoint.corrupt import read_about
    >>> read_about(Path("no-such-folder")) is None
    True
    """
    path = Path(folder) / "about.json"
    if not path.is_file():
        return None
    try:
        about = About(**json.loads(path.read_text(encoding="utf-8")))
        if not isinstance(about.finished, dict):
            raise ValueError("finished is no object")
        return about
    except (ValueError, TypeError, RecursionError) as error:
        raise InputError(
            f"{path} is damaged, or counterpoint did not write it ({error}); remove the folder, or name another"
        ) from error


def check_file(folder: Path, name: str) -> None:
    """Raise if the file of a corruption is not as it was when it was made.

    Official sets have no about.json. In a set that another process makes too, it may not name the file yet.
    """
    about, path = read_about(folder), folder / f"{name}.npy"
    made = about and about.finished.get(name)
    if made is not None and (found := file_md5(path)) != made:
        raise InputError(
            f"{path} is damaged: its MD5 is {found}, and it was made with {made} (about.json); remove this file, and "
            "the same command makes it again"
        )


def file_md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def holds(folder: Path, names: Sequence[str]) -> bool:
    """Whether a set made here has all of these corruptions, complete."""
    about = read_about(folder)
    return about is not None and all(name in about.finished and (folder / f"{name}.npy").is_file() for name in names)


def claim(folder: Path, about: About) -> About:
    """Make the folder ready for this set and return what its about.json says.

    It may already hold a part of this set. Any other content raises.
    """
    check_folder_path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    found = read_about(folder)
    if found is None:
        # A process that was killed here may have left about.json under its temporary name.
        if foreign := sorted({*folder.iterdir()} - {*leftovers(folder, "about.json")}):
            raise InputError(
                f"{folder} holds {foreign[0].name} but no corrupted set that counterpoint made; name another folder"
            )
        write_about(folder, about)
        return about
    wanted, present = (asdict(replace(side, finished={})) for side in (about, found))
    different = [key for key in wanted if wanted[key] != present[key]]
    if different:
        described = "; ".join(f"{key} {present[key]!r}, not {wanted[key]!r}" for key in different)
        raise InputError(f"{folder} holds a set with {described}; {_remedy(folder, different)}")
    return found


def _remedy(folder: Path, different: Sequence[str]) -> str:
    """What the user can do about a folder with another set.

    With another data set or seed, the user has named a folder in use and can name another one. Otherwise it is the same
    set, made differently (by another version, say). It may be in counterpoint's own place, so the only remedy is to
    remove it.
    """
    if {"dataset", "seed"} & set(different):
        return "remove it (it can be made again), or use another folder"
    return f"remove the folder {folder}, and the set is made again"


def write_about(folder: Path, about: About) -> None:
    write_json(folder / "about.json", asdict(about))


def working_in(folder: Path) -> AbstractContextManager[None]:
    """Inside, this process writes to the claimed folder, as other processes may do too.

    A process that is alone there first removes what killed processes have left behind.
    """

    def sweep() -> None:
        for leftover in folder.glob(".*.npy.*.part"):
            leftover.unlink()

    return shared(folder, when_alone=sweep)


@contextmanager
def finished_file(path: Path) -> Iterator[Path]:
    """A temporary file that is renamed to `path` when the block has ended without an error and the disk holds it."""
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        yield temporary
        with temporary.open("r+b") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
