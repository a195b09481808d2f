"""The processes that a process has started, for tests that end them."""

from pathlib import Path


def children(pid: int) -> list[int]:
    """Those that are there now; of Linux only."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:  # it has ended
        return []


def is_running(pid: int, words: str) -> bool:
    """Whether the process is there and its command line has these words."""
    try:
        return words in Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return False
