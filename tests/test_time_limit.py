"""A limit of time stops work before the piece that would end too late."""

from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from counterpoint import time_limit
from counterpoint.errors import InputError
from counterpoint.time_limit import TimeLimit


def asked_at(
    seconds: Sequence[float], minutes: float | None, monkeypatch: pytest.MonkeyPatch, margin: float = 0.0
) -> list[bool]:
    """What a limit says that is asked after so many seconds."""
    clock = iter(seconds)
    monkeypatch.setattr(time_limit, "time", SimpleNamespace(monotonic=lambda: 100 + next(clock)))
    limit = TimeLimit(minutes, 100, margin)
    return [limit.is_near() for _ in seconds]


def test_no_piece_is_begun_that_would_end_too_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece took 20 seconds, so that none is begun in the last 20 of the 60."""
    assert asked_at([0, 1, 21, 30, 39, 41], 1, monkeypatch) == [False, False, False, False, False, True]


def test_a_first_piece_that_compiles_does_not_shorten_the_others_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = asked_at([0, 25, 30, 35, 40, 45, 50, 54, 56], 1, monkeypatch)
    assert asked == [False] * 8 + [True]


def test_what_comes_afterwards_has_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_at([0, 1, 21, 30, 34, 36], 1, monkeypatch, margin=5) == [False, False, False, False, False, True]


def test_the_first_piece_is_always_done(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_at([90, 91], 1, monkeypatch) == [False, True]


def test_without_a_limit_it_is_never_near(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked_at([0, 1e6, 1e9], None, monkeypatch) == [False, False, False]


@pytest.mark.parametrize("minutes", [float("nan"), float("inf")])
def test_a_limit_is_a_number(minutes: float) -> None:
    with pytest.raises(InputError, match="left out for no limit"):
        TimeLimit(minutes, started=0)
