"""The folder of predictions that were made elsewhere: run.json says where they come from. There is no network.

It holds the same logits/ and results.json as a run that was trained here, so that whatever needs no network takes both.
"""

from dataclasses import dataclass
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.results import Imported
from counterpoint.runs.folder import SCHEMA, Run, check_folder, folder_of, load_run
from counterpoint.storage.files import check_links, read_json, write_json
from counterpoint.storage.folders import quoted


@dataclass(frozen=True)
class ImportedRun:
    """Predictions on disk, of a model of this name."""

    folder: Path
    name: str
    imported: Imported

    @property
    def evaluate_command(self) -> str:
        """What makes the logits and the results."""
        return f"counterpoint evaluate --logits FILE --out {quoted(self.folder)}"


AnyRun = Run | ImportedRun
"""What has logits."""


def check_import_folder(folder: Path) -> None:
    """Raise if predictions would be mixed with other files, or would replace a run."""
    check_folder(folder)
    if (folder / "run.json").exists() and not _is_import(folder):
        raise InputError(
            f"{folder} holds a run that counterpoint trained, and it is never replaced; choose another folder (--out)"
        )


def write_import(run: ImportedRun) -> None:
    record = {"schema": SCHEMA, "name": run.name, "imported": encode(run.imported)}
    write_json(run.folder / "run.json", record)


def load_any_run(folder: AnyRun | Path | str) -> AnyRun:
    """Read the run in `folder`, or the predictions from elsewhere that `evaluate_logits` put there.

    A run is returned as it is.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint import evaluate_logits
    >>> from counterpoint.runs.imported import load_any_run
    >>> labels = np.arange(40) % 2
    >>> _ = evaluate_logits({"probs": np.eye(2)[labels] * 0.8 + 0.1, "labels": labels}, "runs/theirs")
    >>> load_any_run(Path("runs/theirs")).folder.name
    'theirs'
    """
    if isinstance(folder, AnyRun):
        return folder
    folder = folder_of(folder)
    if not _is_import(folder):
        return load_run(folder)
    check_links(folder)
    path = folder / "run.json"
    record = read_json(path)
    try:
        if record.get("schema") != SCHEMA or not isinstance(record.get("name"), str):
            raise FieldError("schema or name is not as it must be")
        return ImportedRun(folder, record["name"], decode(Imported, record["imported"]))
    except FieldError as wrong:
        raise InputError(
            f"{path} is damaged or incomplete: {wrong}; `counterpoint evaluate --logits FILE --out "
            f"{quoted(folder)}` makes it again"
        ) from None


def _is_import(folder: Path) -> bool:
    """An interrupted import counts too."""
    path = folder / "run.json"
    record = read_json(path) if path.exists() else None
    return isinstance(record, dict) and "imported" in record
