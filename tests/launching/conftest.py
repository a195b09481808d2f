"""Jobs that only act."""

import pytest

from counterpoint.launching import running
from tests.launching.acting import ACT


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands of jobs that this process starts only act."""
    monkeypatch.setattr(running, "PROGRAM", ("-c", ACT))
