"""Progress bars show when there is progress, and not before."""

import io
import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from rich.console import Console

from counterpoint.console import count_bar, download_bar, training_bar
from counterpoint.train import Progress

BARS: list[tuple[Callable[[], AbstractContextManager[Callable[..., None]]], tuple[Any, ...], str]] = [
    (lambda: training_bar("work"), (Progress(2, 9, 1, 3, 0.5, 0.25, 1000.0),), "loss 0.500 error 25.0% 1,000 images/s"),
    (lambda: download_bar("work"), (2, 9), "2/9 bytes"),
    (lambda: download_bar("work"), (2, None), "2/? bytes"),
    (lambda: count_bar("work"), (2, 9), "2/9"),
]


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is sent."""
    sent = io.StringIO()
    terminal = Console(file=sent, force_terminal=True, color_system=None, width=100)
    monkeypatch.setattr("counterpoint.console.console", terminal)
    return sent


@pytest.mark.parametrize(("bar", "progress", "shown"), BARS, ids=["training", "download", "unknown size", "count"])
def test_a_bar_shows_from_the_first_progress_on(
    screen: io.StringIO,
    bar: Callable[[], AbstractContextManager[Callable[..., None]]],
    progress: tuple[Any, ...],
    shown: str,
) -> None:
    with bar():
        pass
    assert screen.getvalue() == ""
    with bar() as tell:
        assert screen.getvalue() == ""
        tell(*progress)
        assert "work" in screen.getvalue()
    assert shown in screen.getvalue()


def test_a_training_starts_before_it_has_figures(screen: io.StringIO) -> None:
    with training_bar("work") as watcher:
        watcher(Progress(4, 9, 2, 3, math.nan, math.nan, 0.0))
    assert "work 2/3" in screen.getvalue()
    assert "starting" in screen.getvalue()
    assert "nan" not in screen.getvalue()


def test_a_warning_stands_above_the_bar(screen: io.StringIO) -> None:
    with training_bar("work") as watcher:
        watcher(Progress(4, 9, 2, 3, 0.5, 0.25, 1000.0))
        assert "warning" not in screen.getvalue()
        watcher(Progress(4, 9, 2, 3, 0.5, 0.25, 1000.0, ("many are [lost]; " + "x" * 100, "and more")))
        watcher(Progress(5, 9, 2, 3, 0.5, 0.25, 1000.0))
    assert screen.getvalue().count(f"warning: epoch 2: many are [lost]; {'x' * 100}\n") == 1, "on one line"
    assert screen.getvalue().count("warning: epoch 2: and more\n") == 1
