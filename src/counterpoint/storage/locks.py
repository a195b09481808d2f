"""Locks on folders, so that processes do not overwrite each other's files. Windows has no flock and gets no lock."""

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from counterpoint.errors import InputError
from counterpoint.storage.files import writing

if sys.platform != "win32":
    import fcntl

LOCK_FILE = ".lock"
_NO_LOCKS = (errno.ENOSYS, errno.ENOLCK, errno.ENOTSUP)


@contextmanager
def locked(folder: Path, refusal: str) -> Iterator[None]:
    """Hold the folder for this process alone; where another process has it, raise InputError with `refusal`."""
    with _opened(folder) as file:
        if file and not _take(file):
            raise InputError(refusal)
        yield


@contextmanager
def in_turn(folder: Path, when_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder for this process alone, once no other has it; `when_waiting` is called before a wait."""
    with _opened(folder) as file:
        if file and not _take(file):
            when_waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def shared(folder: Path, when_alone: Callable[[], None]) -> Iterator[None]:
    """Hold the folder together with other processes. If none holds it yet, `when_alone` is called first."""
    with _opened(folder) as file:
        if file:
            if _take(file):
                when_alone()
            fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def _opened(folder: Path) -> Iterator[IO[str] | None]:
    """The file that is locked; None on Windows."""
    if sys.platform == "win32":
        yield None
        return
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / LOCK_FILE).open("a+")
    with file:
        yield file


def _take(file: IO[str], *, alone: bool = True) -> bool:
    """Lock the file, for this process alone or together with others. False if another process is in the way."""
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        raise InputError(
            f"{Path(file.name).parent} is on a file system without locks ({error.strerror}), so that another process "
            "could overwrite what is written there; choose a folder on another one, or mount it with locks"
        ) from error
    return True


def is_locked(folder: Path) -> bool:
    """Whether a process holds the folder now.

    For a moment this holds the folder itself. To be asked of folders that others take `in_turn`, who then wait.
    """
    if sys.platform == "win32" or not (folder / LOCK_FILE).exists():
        return False
    with (folder / LOCK_FILE).open() as file:
        return not _take(file, alone=False)
