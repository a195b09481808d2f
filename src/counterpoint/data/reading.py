"""Reading ahead: the next item is read while the current one is in use."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Value = TypeVar("Value")


def read_ahead(read: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[tuple[Item, Value]]:
    """Each item with what `read` gives for it. The next item is read in a thread while this one is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = None
        for item in items:
            following = item, pool.submit(read, item)
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = following
        if waiting is not None:
            yield waiting[0], waiting[1].result()
