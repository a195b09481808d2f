"""How far the run in a folder is, read from its files while it may be under way. Nothing here imports torch."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from counterpoint.runs.folder import checkpoint_paths
from counterpoint.storage.files import read_json


def epochs_done(folder: Path) -> int:
    """How many epochs the log has; 0 where there is no log yet."""
    return max((record["epoch"] for record in _log(folder) if record.get("event") == "epoch"), default=0)


def is_trained(folder: Path) -> bool:
    """Whether there is a checkpoint of the last step, whose number is in the name of its file."""
    paths = checkpoint_paths(folder)
    if not paths or not (folder / "run.json").exists():
        return False
    description = read_json(folder / "run.json").get("description", {})
    return int(paths[-1].stem.removeprefix("step-")) == description.get("total_steps")


def _log(folder: Path) -> Iterator[dict[str, Any]]:
    path = folder / "log.jsonl"
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            yield json.loads(line)
        except json.JSONDecodeError:  # a last line that a crash cut short
            return
