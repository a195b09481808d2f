"""What the command line shows while it works: progress bars and a clean stop on Ctrl-C."""

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import TransferSpeedColumn as SpeedColumn
from rich.text import Text

from counterpoint.train import Progress as TrainingProgress
from counterpoint.train import Watcher

console = Console(markup=False)  # names and paths may hold brackets


@contextmanager
def training_bar(title: str) -> Iterator[Watcher]:
    """A bar over a run's steps with loss, error, images/s and the time left; warnings stand above it."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=12),
        TextColumn("{task.fields[figures]}"),
        TimeRemainingColumn(),
    )
    with _bar(title, *columns, figures="") as update:

        def watch(now: TrainingProgress) -> None:
            for warning in now.warnings:
                console.print(
                    Text.assemble(("warning: ", "bold yellow"), f"epoch {now.epoch}: {warning}"), soft_wrap=True
                )
            figures = f"loss {now.loss:.3f} error {now.error:.1%} {now.images_a_second:,.0f} images/s"
            update(
                description=f"{title} {now.epoch}/{now.epochs}",
                completed=now.step,
                total=now.total_steps,
                figures=figures if now.images_a_second else "starting",  # which takes a while on a GPU
            )

        yield watch


@contextmanager
def download_bar(title: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar over a download's bytes."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), SpeedColumn(), TimeRemainingColumn())
    with _bar(title, *columns) as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def count_bar(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar over things that are counted."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with _bar(title, *columns) as update:
        yield lambda done, total: update(completed=done, total=total)


@contextmanager
def _bar(title: str, *columns: ProgressColumn, **fields: Any) -> Iterator[Callable[..., None]]:
    """A function that updates a bar, which shows from the first call on: not where there is nothing to do, and not
    before an error that comes first."""
    bar = Progress(*columns, console=console)
    task = bar.add_task(title, total=None, **fields)

    def update(**values: Any) -> None:
        bar.update(task, **values)
        bar.start()

    try:
        yield update
    finally:
        if bar.live.is_started:
            bar.stop()


@contextmanager
def stop_on_signal() -> Iterator[threading.Event]:
    """An event that Ctrl-C or a termination request sets, so that work can end with a checkpoint; a second one ends it
    at once."""
    stop = threading.Event()

    def handle(number: int, _: FrameType | None) -> None:
        if stop.is_set():
            sys.exit(128 + number)
        stop.set()
        console.print("stopping after this step; once more ends it at once")

    old = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
