"""Locks on folders, so that processes do not overwrite each other's files. Windows has no flock and gets no lock."""

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


def _open(folder: Path) -> IO[str]:
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / LOCK_FILE).open("a+")


@contextmanager
def locked(folder: Path, refusal: str) -> Iterator[None]:
    """Hold the folder for this process alone; where another process has it, raise InputError with `refusal`."""
    if sys.platform == "win32":
        yield
        return
    with _open(folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(refusal) from None
        yield


@contextmanager
def in_turn(folder: Path, when_waiting: Callable[[], None]) -> Iterator[None]:
    """Hold the folder for this process alone, once no other has it; `when_waiting` is called before a wait."""
    if sys.platform == "win32":
        yield
        return
    with _open(folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            when_waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def shared(folder: Path, when_alone: Callable[[], None]) -> Iterator[None]:
    """Hold the folder together with other processes. If none holds it yet, `when_alone` is called first."""
    if sys.platform == "win32":
        yield
        return
    with _open(folder) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            when_alone()
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


def is_locked(folder: Path) -> bool:
    """Whether a process holds the folder now.

    For a moment this holds the folder itself. To be asked of folders that others take `in_turn`, who then wait.
    """
    if sys.platform == "win32" or not (folder / LOCK_FILE).exists():
        return False
    with (folder / LOCK_FILE).open() as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
