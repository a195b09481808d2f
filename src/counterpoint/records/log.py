"""The lines of a run's log.jsonl, read and checked. They may come from a stranger."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from counterpoint.config import MOST_STEPS
from counterpoint.errors import InputError, shown
from counterpoint.records.codec import FieldError, Range, decode
from counterpoint.records.results import Seconds

DIVERGED = "diverged"
"""The event in the log of a training that diverged."""
Count = Annotated[int, Range(0, MOST_STEPS)]


@dataclass(frozen=True)
class _Environment:
    device: str
    commit: str | None = None
    versions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class _Line:
    """A line of the log. Which of these it has depends on its event and its age."""

    event: str
    step: Count = 0
    epoch: Count = 0
    seconds: Seconds = 0.0
    time: str = ""
    environment: _Environment | None = None
    health: Mapping[str, Any] | None = None
    validation: Mapping[str, Any] | None = None

    def problem(self) -> str:
        return "epoch is missing" if self.health is not None and not (self.epoch and self.step) else ""


def read_lines(log: Path) -> list[dict[str, Any]]:
    """The records of a log, none where there is no log. A last line that a crash cut short is left out."""
    records: list[dict[str, Any]] = []
    lines = _read(log).splitlines() if log.exists() else []
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            decode(_Line, record)
        except (ValueError, RecursionError) as problem:
            if number == len(lines):
                break
            raise _damaged(log, number, problem) from None
        except FieldError as problem:
            raise _damaged(log, number, problem) from None
        records.append(record)
    return records


def _read(log: Path) -> bytes:
    try:
        return log.read_bytes()
    except OSError as error:
        raise InputError(f"{log} cannot be read: {error.strerror}; restore the file from a copy") from None


def diverged_after(records: Sequence[Mapping[str, Any]]) -> int | None:
    """The step after which training diverged; None where it did not, or has gone on from before."""
    steps = [record.get("step") for record in records if record.get("event") == DIVERGED]
    return steps[-1] if steps else None


def _damaged(log: Path, number: int, problem: Exception) -> InputError:
    return InputError(
        f"{log} is damaged: line {number} cannot be read ({shown(problem)}); restore the file "
        "from a copy, or remove the line"
    )
