"""Nothing outside of the folder that the user named is read, whatever a link or a path in a file says.

So a data set from a stranger cannot make counterpoint read, keep or show other files of the user.
"""

import os
from functools import lru_cache
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.images.listing import printable


class Fence:
    """A folder, with every link in its own path followed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._real = os.path.realpath(folder)
        self._real_folder = lru_cache(maxsize=1 << 16)(os.path.realpath)  # many images lie in few folders

    def way_out(self, name: str) -> str | None:
        """Where a path, relative to the folder or absolute, leads to if that is outside of the folder."""
        folder, last = os.path.split(os.path.join(self._real, name))
        target = os.path.join(self._real_folder(folder), last)
        if last in ("", ".", "..") or os.path.islink(target):
            target = os.path.realpath(target)
        return None if f"{target}{os.sep}".startswith(os.path.join(self._real, "")) else target

    def refuse(self, what: str, target: str) -> InputError:
        return InputError(
            f"{what} leads to {printable(target)}, outside of {self.folder}; only what lies in that folder is read: "
            "copy the images into it, or remove this one"
        )
