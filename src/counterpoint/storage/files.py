"""Files that are whole or absent: written under another name, synced, then renamed."""

import json
import os
from pathlib import Path
from typing import Any

from counterpoint.errors import InputError


def write_atomically(path: Path, content: bytes) -> None:
    """After a crash at any moment `path` holds its old content or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a rename durable. On Windows folders cannot be opened, and a rename needs no sync."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """`value` as readable JSON, atomically; NaN and infinity are refused, because JSON has no such numbers."""
    write_atomically(path, (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def read_json(path: Path) -> Any:
    """The content of a JSON file, or an error that names the file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not a whole JSON file ({error}); restore it or make it anew") from None
