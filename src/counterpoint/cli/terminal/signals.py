"""Ctrl-C (SIGINT), the request to end (SIGTERM) and the end of the terminal (SIGHUP): work ends with a checkpoint if it
can, and the exit status tells which signal came. Output that nobody reads, as after `| head`, asks for the same.

The status is 128 plus the signal's number, as shells have it: 130 after Ctrl-C, 143 after a request to end, 129 after
the terminal's end, 141 where nobody reads.
"""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

import typer

from counterpoint.cli.terminal.progress import UNREAD, console, write_nowhere

_HANG_UP = (signal.SIGHUP,) if sys.platform != "win32" else ()


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

    def handle(number: int) -> None:
        if stop.is_set():
            # Shell and system both tell that the terminal has ended. That is no second wish.
            if at_once_if_again and number not in _HANG_UP:
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
    """Inside, a request to end, and the end of the terminal, unwind as Ctrl-C does, so that nothing half-written is
    left. The status is 143 or 129.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may choose what a signal does
        return
    with _handled_by(lambda number: sys.exit(128 + number), signal.SIGTERM):
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
def _handled_by(handler: Callable[[int], None], *numbers: signal.Signals) -> Iterator[None]:
    """Inside, the handler gets these signals and the end of the terminal, unless that is ignored, as after `nohup`."""
    hang_up = [one for one in _HANG_UP if signal.getsignal(one) != signal.SIG_IGN]
    on_terminal = sys.stdout.isatty(), sys.stderr.isatty()  # which a terminal that has ended does not say any more

    def handle(number: int, _: FrameType | None) -> None:
        if number in hang_up:  # each further word to the terminal would be an error
            if on_terminal[0]:
                console.fall_silent()
            if on_terminal[1]:
                write_nowhere(sys.stderr)
        handler(number)

    before = {number: signal.signal(number, handle) for number in (*numbers, *hang_up)}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)
