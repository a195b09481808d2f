"""What a run's own files must hold to be read: run.json and the lines of log.jsonl. They may come from a stranger."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from counterpoint.config import MOST_STEPS
from counterpoint.errors import InputError, shown
from counterpoint.records.codec import FieldError, Range, decode

MOST_SEED = 2**63 - 1
Count = Annotated[int, Range(0, MOST_STEPS)]
Size = Annotated[int, Range(1, 1 << 16)]
Seconds = Annotated[float, Range(0, 1e12)]


@dataclass(frozen=True)
class _Environment:
    device: str
    commit: str | None = None
    versions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class _Run:
    """run.json, apart from the experiment and the description, which are checked where they are read."""

    experiment: Mapping[str, Any]
    seed: Annotated[int, Range(0, MOST_SEED)]
    command: str = ""
    images: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class _Description:
    classes: tuple[str, ...]
    channels: Size
    height: Size
    width: Size
    training_images: Annotated[int, Range(1, 2**53)]
    total_steps: Annotated[int, Range(1, MOST_STEPS)]
    normalisation: Mapping[str, Any]

    def problem(self) -> str:
        return "" if self.classes else "classes is empty"


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


def check_run(record: Any) -> None:
    """Raise FieldError unless run.json has all that is read from it."""
    decode(_Run, record)


def check_description(values: Any) -> None:
    """Raise FieldError unless all sizes and names are there and can be meant."""
    decode(_Description, values)


def read_lines(log: Path) -> list[dict[str, Any]]:
    """The records of a log, none where there is no log. A last line that a crash cut short is left out."""
    records: list[dict[str, Any]] = []
    lines = log.read_bytes().splitlines() if log.exists() else []
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


def _damaged(log: Path, number: int, problem: Exception) -> InputError:
    return InputError(
        f"{log} is damaged: line {number} cannot be read ({shown(problem)}); restore the file "
        "from a copy, or remove the line"
    )
