"""Commands, run in this process."""

import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from typing import NamedTuple

import pytest

from counterpoint.cli import main


class Ended(NamedTuple):
    """How a command ended, and its words, without the line ends that a terminal's width puts between them."""

    status: int
    out: str
    err: str


Call = Callable[..., Ended]


@pytest.fixture(scope="session")
def call() -> Call:
    def call(*arguments: object) -> Ended:
        out, err = StringIO(), StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.setenv("COLUMNS", "200")
            patch.setattr(sys, "argv", ["counterpoint", *map(str, arguments)])
            with pytest.raises(SystemExit) as ended:
                main()
        return Ended(int(ended.value.code or 0), " ".join(out.getvalue().split()), " ".join(err.getvalue().split()))

    return call
