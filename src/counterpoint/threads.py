"""Work spread over threads: NumPy and Pillow let other threads run while they compute."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def in_threads(work: Callable[[Task], Result], tasks: Iterable[Task], most: int | None = None) -> Iterator[Result]:
    """`map`, in one thread per CPU and at most `most`. The results come in the order of the tasks."""
    cpus = os.cpu_count() or 1
    with ThreadPoolExecutor(min(cpus, most or cpus)) as pool:
        yield from pool.map(work, tasks)
