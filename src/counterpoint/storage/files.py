"""Files that are either complete or absent: written under another name, synced, then renamed."""

import errno
import json
import math
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterpoint.errors import InputError, shown

_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_SYNC = (errno.EINVAL, errno.ENOTSUP)
"""Some network file systems say this of a folder. The file itself is synced there too."""
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)


def write_atomically(path: Path, content: bytes) -> None:
    """After a crash at any moment `path` holds its old content or the new one, never a part."""
    # Not the process's number: in containers that share a folder, two processes often have the same one.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        sync_folder(path.parent)


def leftovers(folder: Path, name: str) -> Iterator[Path]:
    """What processes left in the folder that were killed while they wrote a file of this name, or of this pattern."""
    return folder.glob(f".{name}.*.tmp")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Inside, a full disk or a folder that cannot be written to becomes an error that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise InputError(
                f"the disk is full: {path} cannot be written; free some space, then give the same command "
                "again. What was written before is complete"
            ) from error
        if error.errno in _FORBIDDEN:
            raise InputError(
                f"{path} cannot be written ({error.strerror}); choose a folder that you may write to, or change its "
                "permissions"
            ) from error
        raise


def check_folder_path(folder: Path) -> None:
    """Raise if nothing can be written to the folder, or if it is not there and cannot be made."""
    with writing(folder):
        nearest = nearest_folder(folder)
        if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def nearest_folder(folder: Path) -> Path:
    """The folder, or else the first one above it that is there. Raise if a file is in the way."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir():
        raise InputError(f"{nearest} is a file, but a folder is needed there; give another path")
    return nearest


def check_file_path(path: Path, suggested: str) -> None:
    """Raise if `write_atomically` could not write to `path`. To be called before long work for the file.

    `suggested` is a name for the file, in case that only its folder was given.
    """
    with writing(path):
        if path.is_dir():
            raise InputError(f"{path} is a folder; give a file name, such as {path / suggested}")
        check_folder_path(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename durable. On Windows folders cannot be opened, and a rename needs no sync."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        except OSError as error:
            if error.errno not in _NO_SYNC:
                raise
        finally:
            os.close(descriptor)


def check_links(folder: Path) -> None:
    """Raise if something in the folder is a link that leads out of it.

    A folder may come from a stranger. What is written to it must not land in another file of the user's.
    """
    inside = os.path.realpath(folder)  # Path.resolve raises for a link to itself
    for parent, folders, files in os.walk(folder):
        for path in (Path(parent, name) for name in (*folders, *files)):
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
                raise InputError(
                    f"{path} is a link out of its folder, to {os.readlink(path)}; put the file or folder itself there"
                )


def write_json(path: Path, value: Any) -> None:
    """`value` as readable JSON, atomically; NaN and infinity are refused, because JSON has no such numbers.

    A file's name may be no text. What Python makes of its bytes is written as JSON writes it, such as \\udcff.
    """
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(path, text.encode(errors="backslashreplace"))


def read_json(path: Path) -> Any:
    """The content of a JSON file, or an error that names the file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    return parse_json(content, path)


def parse_json(content: bytes, path: Path) -> Any:
    """What `read_json` gives for a file of this content. `path` is only named."""
    try:
        return json.loads(content.decode("utf-8"), parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:  # also for an integer of thousands of digits
        raise InputError(
            f"{path} is damaged or is not a JSON file ({shown(error)}); restore it from a copy, or make it again"
        ) from None


def _finite(text: str) -> float:
    """A number of a JSON file. Python would take NaN, and read 1e400 as infinity."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{shown(text)} is no finite number")
    return number
