"""How far the run in a folder is, read from its files while it may be under way. Nothing here imports torch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterpoint.runs.folder import checkpoint_paths
from counterpoint.storage.files import read_json


def epochs_done(folder: Path) -> int:
    """How many epochs the log has; 0 where there is no log yet."""
    epochs = (record.get("epoch") for record in _log(folder) if record.get("event") == "epoch")
    return max((epoch for epoch in epochs if isinstance(epoch, int)), default=0)


def is_trained(folder: Path) -> bool:
    """Whether there is a checkpoint of the last step, whose number is in the name of its file."""
    paths, file = checkpoint_paths(folder), folder / "run.json"
    if not paths or not file.exists():
        return False
    total = _object(_object(read_json(file)).get("description")).get("total_steps")
    return isinstance(total, int) and paths[-1].stem == f"step-{total:09d}"


def _log(folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "log.jsonl"
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else ():
        try:
            yield _object(json.loads(line))
        except ValueError:  # a last line that a crash cut short
            return


def _object(value: Any) -> dict[str, Any]:
    """`value`, if it is an object of JSON; otherwise an empty one."""
    return value if isinstance(value, dict) else {}
