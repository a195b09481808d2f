"""How far the run in a folder is, read from its log and its checkpoints while it may be under way.

The files may come from a stranger. Nothing here imports torch.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeVar

from counterpoint.config import MOST_STEPS
from counterpoint.errors import InputError, shown
from counterpoint.records.codec import FieldError, Range, decode
from counterpoint.records.results import Seconds
from counterpoint.storage.files import read_json
from counterpoint.storage.folders import quoted

Entry = TypeVar("Entry")

DIVERGED = "diverged"
"""The event in the log of a training that diverged."""
_Count = Annotated[int, Range(0, MOST_STEPS)]
_DIGITS = len(str(MOST_STEPS))
"""Of the step in a checkpoint's name. Names in order are steps in order."""


@dataclass(frozen=True)
class _Environment:
    device: str
    commit: str | None = None
    versions: Mapping[str, str] | None = None


@dataclass(frozen=True)
class _Line:
    """A line of the log. Which of these it has depends on its event and its age."""

    event: str
    step: _Count = 0
    epoch: _Count = 0
    seconds: Seconds = 0.0
    time: str = ""
    environment: _Environment | None = None
    health: Mapping[str, Any] | None = None
    validation: Mapping[str, Any] | None = None

    def problem(self) -> str:
        is_epoch = self.event == "epoch" and self.health is not None
        return "epoch is missing" if is_epoch and not (self.epoch and self.step) else ""


def read_lines(log: Path) -> list[dict[str, Any]]:
    """The records of a log, none where there is no log. A last line that a crash cut short is left out."""
    records: list[dict[str, Any]] = []
    try:
        lines = log.read_bytes().splitlines() if log.exists() else []
    except OSError as error:
        raise InputError(f"{log} cannot be read: {error.strerror}; restore the file from a copy") from None
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


def log_entry(kind: type[Entry], record: Mapping[str, Any], name: str) -> Entry:
    """A typed entry of one of the records of a log."""
    try:
        return decode(kind, record[name])
    except FieldError as wrong:
        raise InputError(
            f"the entry {name} in log.jsonl is damaged or incomplete: {wrong}; restore the file from a copy"
        ) from None


def diverged_after(records: Sequence[Mapping[str, Any]]) -> int | None:
    """The step after which training diverged; None where it did not, or has gone on from before."""
    steps = [record.get("step") for record in records if record.get("event") == DIVERGED]
    return steps[-1] if steps else None


def _damaged(log: Path, number: int, problem: Exception) -> InputError:
    return InputError(
        f"{log} is damaged: line {number} cannot be read ({shown(problem)}); restore the file "
        "from a copy, or remove the line"
    )


def checkpoint_name(step: int) -> str:
    """The file of a step's checkpoint."""
    return f"step-{step:0{_DIGITS}d}.safetensors"


def checkpoint_paths(folder: Path) -> list[Path]:
    """The checkpoints of the run in `folder`, the oldest first. A copy that a person keeps beside them is none."""
    return sorted((folder / "checkpoints").glob(f"step-{'[0-9]' * _DIGITS}.safetensors"))


def epochs_done(folder: Path) -> int:
    """How many epochs the log has; 0 where there is no log yet."""
    lines = read_lines(folder / "log.jsonl")
    return max((line.get("epoch", 0) for line in lines if line["event"] == "epoch"), default=0)


def is_trained(folder: Path) -> bool:
    """Whether there is a checkpoint of the last step, whose number is in the name of its file."""
    paths, file = checkpoint_paths(folder), folder / "run.json"
    if not paths or not file.exists():
        return False
    total = _total_steps(_object(read_json(file)))
    return total is not None and paths[-1].name == checkpoint_name(total)


def why_no_results(folder: Path) -> str:
    """Why the run in `folder`, which has no results.json, has none yet, and the command that it needs next."""
    given = "--logits FILE --out " if "imported" in _object(read_json(folder / "run.json")) else ""
    command = f"counterpoint evaluate {given}{quoted(folder)}"
    return why_not_trained(folder) or f"{folder} has no results.json; `{command}` makes it"


def why_not_trained(folder: Path) -> str:
    """Why the run in `folder` cannot be evaluated yet, and what to do. Empty if it can, or if run.json does not tell.

    A run that an earlier version began does not tell its number of steps, and predictions from elsewhere have none.
    """
    record = _object(read_json(folder / "run.json"))
    total = _total_steps(record)
    if total is None or is_trained(folder):
        return ""
    steps = [int(path.stem.removeprefix("step-")) for path in checkpoint_paths(folder)]
    return not_finished(folder, record, max(steps, default=0), total)


def not_finished(folder: Path, record: Mapping[str, Any], done: int, total: int) -> str:
    """That the run is not finished, and what to do. `record` is what run.json holds."""
    if (step := diverged_after(read_lines(folder / "log.jsonl"))) is not None:
        rate = _object(record.get("experiment")).get("learning_rate")
        return (
            f"{folder} is not finished: training diverged after step {step} of {total}, and would again; train a new "
            f"run with a lower learning_rate than {rate}, in another folder (--out)"
        )
    return f"{folder} is not finished: {done} of {total} steps are done; continue it with {go_on_with(record)}"


def began_with(record: Mapping[str, Any]) -> str:
    """The command that began the run, from run.json. It is only shown, and never executed."""
    return str(record.get("command") or "counterpoint train")


def go_on_with(record: Mapping[str, Any]) -> str:
    """How to continue a run: with its command, or with the call in the script or notebook that began it."""
    command = began_with(record)
    if command.split()[0] == "counterpoint":
        return f"`{command}`"
    return f"the same call of train (it was begun by `{command}`)"


def _total_steps(record: Mapping[str, Any]) -> int | None:
    total = _object(record.get("description")).get("total_steps")
    return total if isinstance(total, int) else None


def _object(value: Any) -> dict[str, Any]:
    """`value`, if it is an object of JSON; otherwise an empty one."""
    return value if isinstance(value, dict) else {}
