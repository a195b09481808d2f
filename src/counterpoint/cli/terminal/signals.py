"""Ctrl-C (SIGINT) and the request to end (SIGTERM): work ends with a checkpoint if it can, and the exit status tells
which signal came. Output that nobody reads, as after `| head`, asks for the same.

The status is 128 plus the signal's number, as shells have it: 130 after Ctrl-C, 143 after a request to end, 141 where
nobody reads.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

import typer

from counterpoint.cli.terminal.progress import UNREAD, console

_Handler = Callable[[int, FrameType | None], Any]


@dataclass
class Stop:
    """Whether a stop was asked for, and with which status the command then ends."""

    status: int = 0

    def is_set(self) -> bool:
        return self.status != 0


@contextmanager
def stop_on_signal(*, at_once_if_again: bool = True) -> Iterator[Stop]:
    """Inside, the first signal asks for a stop, so that work can end with a checkpoint. A second one ends it at once.
    If nobody reads the output any more, that asks for a stop too.

    Under torchrun a second one is ignored: torchrun passes on a signal that its processes have already received from
    the terminal or the scheduler. Python handles a signal between two instructions, so a long step is finished first.
    """
    stop = Stop()

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            if at_once_if_again:
                sys.exit(128 + number)
            return
        stop.status = 128 + number
        console.print("stopping after this step" + ("; once more ends it at once" if at_once_if_again else ""))

    def ask_unread() -> None:
        stop.status = stop.status or UNREAD  # Ctrl-C also ends the reader in `| tee log.txt`

    before, console.when_unread = console.when_unread, ask_unread
    try:
        with _handled_by(handle, signal.SIGINT, signal.SIGTERM):
            yield stop
    finally:
        console.when_unread = before


@contextmanager
def exit_when_terminated() -> Iterator[None]:
    """Inside, a request to end unwinds as Ctrl-C does, so that nothing half-written is left. It is status 143."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may choose what a signal does
        return
    with _handled_by(lambda number, _: sys.exit(128 + number), signal.SIGTERM):
        yield


@contextmanager
def ended_by_ctrl_c(words: str) -> Iterator[None]:
    """Inside, Ctrl-C ends the command with these words and status 130."""
    try:
        yield
    except KeyboardInterrupt:
        console.print(words, soft_wrap=True)
        raise typer.Exit(130) from None


@contextmanager
def _handled_by(handler: _Handler, *numbers: signal.Signals) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
