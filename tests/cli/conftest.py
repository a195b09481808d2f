"""Commands, run in this process."""

import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest

from counterpoint.cli import main


class Ended(NamedTuple):
    """How a command ended, and its words, without the line ends that a terminal's width puts between them."""

    status: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    def call(*arguments: object) -> Ended:
        monkeypatch.setenv("COLUMNS", "200")
        monkeypatch.setattr(sys, "argv", ["counterpoint", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), " ".join(out.split()), " ".join(err.split()))

    return call
