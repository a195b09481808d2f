"""Where data sets live on disk."""

import os
import platform
from pathlib import Path


def data_root() -> Path:
    """The folder COUNTERPOINT_DATA names, or `counterpoint` in the user's cache folder."""
    if chosen := os.environ.get("COUNTERPOINT_DATA"):
        return Path(chosen).expanduser()
    caches = {"Darwin": "~/Library/Caches", "Windows": "~/AppData/Local"}
    cache = os.environ.get("XDG_CACHE_HOME") or caches.get(platform.system(), "~/.cache")
    return Path(cache).expanduser() / "counterpoint"
