"""How far the run in a folder is, read from its files while it may be under way. Nothing here imports torch."""

from pathlib import Path
from typing import Any

from counterpoint.runs.folder import checkpoint_name, checkpoint_paths
from counterpoint.runs.log import read_lines
from counterpoint.storage.files import read_json


def epochs_done(folder: Path) -> int:
    """How many epochs the log has; 0 where there is no log yet."""
    lines = read_lines(folder / "log.jsonl")
    return max((line.get("epoch", 0) for line in lines if line["event"] == "epoch"), default=0)


def is_trained(folder: Path) -> bool:
    """Whether there is a checkpoint of the last step, whose number is in the name of its file."""
    paths, file = checkpoint_paths(folder), folder / "run.json"
    if not paths or not file.exists():
        return False
    total = _object(_object(read_json(file)).get("description")).get("total_steps")
    return isinstance(total, int) and paths[-1].name == checkpoint_name(total)


def _object(value: Any) -> dict[str, Any]:
    """`value`, if it is an object of JSON; otherwise an empty one."""
    return value if isinstance(value, dict) else {}
