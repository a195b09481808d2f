"""Processes that Ctrl-C reaches."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interrupts_heard() -> Iterator[None]:
    """Inside, a new process hears Ctrl-C. Tests in the background of a shell ignore it, and would pass that on."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
