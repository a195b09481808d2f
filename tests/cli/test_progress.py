"""Progress bars show when there is progress, and not before."""

import io
import math
from collections.abc import Callable

import pytest
from rich.console import Console

from counterpoint.cli.terminal.progress import TerminalWatcher
from counterpoint.watching import TrainingProgress, ValidationFigures

BARS: dict[str, tuple[Callable[[TerminalWatcher], None], str]] = {
    "training": (
        lambda watcher: watcher.trained(TrainingProgress("work", 2, 9, 1, 3, 0.5, 0.25, 1000.0)),
        "loss 0.500 error 25.0% 1,000 images/s",
    ),
    "validation": (
        lambda watcher: watcher.trained(
            TrainingProgress("work", 2, 9, 1, 3, 0.5, 0.25, 1000.0, ValidationFigures(0.125, 0.4, 0.03))
        ),
        "validation: error 12.5% NLL 0.400 ECE 3.0%",
    ),
    "download": (lambda watcher: watcher.downloaded("work", 2, 9), "2/9 bytes"),
    "unknown size": (lambda watcher: watcher.downloaded("work", 2, None), "2/? bytes"),
    "count": (lambda watcher: watcher.counted("work", 2, 9), "2/9"),
}


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What a terminal is sent."""
    sent = io.StringIO()
    terminal = Console(file=sent, force_terminal=True, color_system=None, width=100)
    monkeypatch.setattr("counterpoint.cli.terminal.progress.console", terminal)
    return sent


@pytest.mark.parametrize(("tell", "shown"), BARS.values(), ids=BARS)
def test_a_bar_shows_from_the_first_progress_on(
    screen: io.StringIO, tell: Callable[[TerminalWatcher], None], shown: str
) -> None:
    with TerminalWatcher():
        pass
    assert screen.getvalue() == ""
    with TerminalWatcher() as watcher:
        assert screen.getvalue() == ""
        tell(watcher)
        assert "work" in screen.getvalue()
    assert shown in screen.getvalue()


def test_new_work_takes_the_bars_place(screen: io.StringIO) -> None:
    with TerminalWatcher() as watcher:
        watcher.counted("first", 1, 2)
        watcher.counted("first", 2, 2)
        watcher.counted("second", 1, 3)
        watcher.noted("a note [in brackets]")
    lines = [line.split() for line in screen.getvalue().splitlines()]
    assert any(line[0].endswith("first") and line[-2] == "2/2" for line in lines if len(line) > 2)
    assert any(line[0].endswith("second") and line[-2] == "1/3" for line in lines if len(line) > 2)
    assert "a note [in brackets]" in screen.getvalue()


def test_a_training_starts_before_it_has_figures(screen: io.StringIO) -> None:
    with TerminalWatcher() as watcher:
        watcher.trained(TrainingProgress("work", 4, 9, 2, 3, math.nan, math.nan, 0.0))
    assert "work 2/3" in screen.getvalue()
    assert "starting" in screen.getvalue()
    assert "nan" not in screen.getvalue()


def test_a_warning_stands_above_the_bar(screen: io.StringIO) -> None:
    with TerminalWatcher() as watcher:
        watcher.trained(TrainingProgress("work", 4, 9, 2, 3, 0.5, 0.25, 1000.0))
        assert "warning" not in screen.getvalue()
        watcher.warned("many are [lost]; " + "x" * 100)
        watcher.trained(TrainingProgress("work", 5, 9, 2, 3, 0.5, 0.25, 1000.0))
    assert screen.getvalue().count(f"warning: many are [lost]; {'x' * 100}\n") == 1, "on one line"


def test_a_note_after_the_count_stands_below_the_bar(screen: io.StringIO) -> None:
    with TerminalWatcher() as watcher:
        watcher.counted("reading", 3, 3)
        watcher.noted("what was found")
    assert screen.getvalue().rindex("3/3") < screen.getvalue().index("what was found")


def test_a_file_gets_a_line_of_long_work_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    written, seconds = io.StringIO(), [0.0]
    monkeypatch.setattr("counterpoint.cli.terminal.progress.console", Console(file=written, width=100))
    monkeypatch.setattr("time.monotonic", lambda: seconds[0])
    with TerminalWatcher() as watcher:
        for done in range(4):
            seconds[0] = 50.0 * done
            watcher.counted("work", done, 9)
            assert written.getvalue().count("\n") == (1 if done >= 2 else 0)
    assert [f"{done}/9" in written.getvalue() for done in range(4)] == [False, False, True, True]
