"""What the command line shows while it works: progress bars, notes and warnings."""

import os
import sys
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, TextIO

from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from counterpoint.watching import TrainingProgress, Watcher

UNREAD = 141
"""The status of a command that ends because nobody reads its output, as after `| head`: shells have 128 + SIGPIPE."""


def _end_unread() -> None:
    sys.exit(UNREAD)


class Terminal(Console):
    """The terminal. When nobody reads it any more it falls silent and calls `when_unread`, which ends the command."""

    when_unread: Callable[[], None] = staticmethod(_end_unread)

    def on_broken_pipe(self) -> None:
        self.fall_silent()
        self.when_unread()

    def fall_silent(self) -> None:
        """Print nothing any more."""
        self.quiet = True
        write_nowhere(sys.stdout)


def write_nowhere(stream: TextIO) -> None:
    """Let what is left in a stream that nobody reads go nowhere. Python's status is 120 if it cannot write it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


console = Terminal(markup=False)  # names and paths may hold brackets

_SECONDS_BETWEEN_LINES = 60
"""In a file a bar cannot be drawn anew. Each time it takes a line more, which tells whoever waits that work goes on."""

_TRAINING = (
    TextColumn("{task.description}"),
    BarColumn(bar_width=12),
    TextColumn("{task.fields[figures]}"),
    TimeRemainingColumn(),
)
_COUNT = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
_DOWNLOAD = (
    TextColumn("{task.description}"),
    BarColumn(),
    DownloadColumn(),
    TransferSpeedColumn(),
    TimeRemainingColumn(),
)


def say(words: str) -> None:
    """Print words on one line, however long, without colouring the numbers in them."""
    console.print(words, highlight=False, soft_wrap=True)


def print_parts(parts: Iterable[RenderableType]) -> None:
    """Print tables and sentences, without colouring the numbers in them."""
    for part in parts:
        console.print(part, highlight=False)


class TerminalWatcher(Watcher):
    """Draws one progress bar at a time, for the work that is under way. A bar of new work takes the place of the last
    one.

    There is no bar before the first call. So none is drawn if there is nothing to do or if an error comes first.
    """

    def __init__(self) -> None:
        self._work = ""
        self._bar: Progress | None = None
        self._last_line = 0.0

    def __enter__(self) -> "TerminalWatcher":
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._end()

    def trained(self, progress: TrainingProgress) -> None:
        figures = f"loss {progress.loss:.3f} error {progress.error:.1%} {progress.images_per_second:,.0f} images/s"
        if validated := progress.validated:
            figures += f"\nvalidation: error {validated.error:.1%} NLL {validated.nll:.3f} ECE {validated.ece:.1%}"
        self._show(
            progress.experiment,
            _TRAINING,
            description=f"{progress.experiment} {progress.epoch}/{progress.epochs}",
            completed=progress.step,
            total=progress.total_steps,
            figures=figures if progress.images_per_second else "starting",  # the start takes a while on a GPU
        )

    def counted(self, work: str, done: int, total: int) -> None:
        self._show(work, _COUNT, completed=done, total=total)
        if done == total:
            self._end()  # what is printed next comes after the bar

    def downloaded(self, name: str, done: int, total: int | None) -> None:
        """`done` of the file's `total` bytes are here."""
        self._show(name, _DOWNLOAD, completed=done, total=total)

    def noted(self, text: str) -> None:
        console.print(Text(text), soft_wrap=True)

    def warned(self, text: str) -> None:
        console.print(Text.assemble(("warning: ", "bold yellow"), text), soft_wrap=True)

    def _show(self, work: str, columns: tuple[ProgressColumn, ...], **values: Any) -> None:
        if self._bar is None or work != self._work:
            self._end()
            self._work, self._bar = work, Progress(*columns, console=console)
            self._bar.add_task(work, total=None, figures="")
            self._last_line = time.monotonic()
        self._bar.update(self._bar.task_ids[0], **values)
        self._bar.start()
        if not console.is_terminal and time.monotonic() - self._last_line > _SECONDS_BETWEEN_LINES:
            console.print(self._bar.get_renderable())
            self._last_line = time.monotonic()

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
