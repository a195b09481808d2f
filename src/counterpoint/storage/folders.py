"""Where data sets live on disk, which folders hold runs, and how paths stand in commands that are suggested."""

import os
import platform
import shlex
from pathlib import Path


def data_root() -> Path:
    """The folder COUNTERPOINT_DATA names, or `counterpoint` in the user's cache folder.

    >>> import os
    >>> from counterpoint.data import data_root
    >>> os.environ["COUNTERPOINT_DATA"] = "my-data"
    >>> data_root().name
    'my-data'
    """
    if chosen := os.environ.get("COUNTERPOINT_DATA"):
        return Path(chosen).expanduser()
    caches = {"Darwin": "~/Library/Caches", "Windows": "~/AppData/Local"}
    cache = os.environ.get("XDG_CACHE_HOME") or caches.get(platform.system(), "~/.cache")
    return Path(cache).expanduser() / "counterpoint"


def quoted(path: Path | str) -> str:
    """A path, or another word, as a shell takes it in a command that is suggested."""
    return shlex.quote(str(path))


def why_no_run(folder: Path) -> str:
    """What is wrong with a path that should be a run's folder and has no run.json."""
    if not folder.exists():
        return f"{folder} does not exist; give the folder that `counterpoint train --out` made"
    if runs := sorted(str(file.parent) for file in folder.glob("*/run.json")):
        return f"{folder} is not a run folder, but holds some: {' '.join(map(quoted, runs))}"
    return f"{folder} is not a run folder (there is no run.json); give the folder that `counterpoint train --out` made"


def download_command(name: str, root: Path) -> str:
    """The command that downloads a data set into `root`, with --data unless `root` is the default."""
    place = "" if root == data_root() else f" --data {quoted(root)}"
    return f"counterpoint data {name}{place}"
