"""Where data sets live on disk."""

import os
import platform
import shlex
from pathlib import Path


def data_root() -> Path:
    """The folder COUNTERPOINT_DATA names, or `counterpoint` in the user's cache folder."""
    if chosen := os.environ.get("COUNTERPOINT_DATA"):
        return Path(chosen).expanduser()
    caches = {"Darwin": "~/Library/Caches", "Windows": "~/AppData/Local"}
    cache = os.environ.get("XDG_CACHE_HOME") or caches.get(platform.system(), "~/.cache")
    return Path(cache).expanduser() / "counterpoint"


def download_command(name: str, root: Path) -> str:
    """What downloads a data set into `root`, which is named where the command would not take it by itself."""
    place = "" if root == data_root() else f" --data {shlex.quote(str(root))}"
    return f"counterpoint data {name}{place}"
