"""Work spread over threads: NumPy, Pillow and files let other threads run meanwhile."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


def usable_cpus() -> int:
    """How many CPUs this process may run on: a cluster gives a job some of those that the machine has."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def in_threads(work: Callable[[Task], Result], tasks: Iterable[Task], most: int | None = None) -> Iterator[Result]:
    """`map`, in one thread per CPU of this process and at most `most`. The results come in the order of the tasks."""
    cpus = usable_cpus()
    with ThreadPoolExecutor(min(cpus, most or cpus)) as pool:
        yield from pool.map(work, tasks)


def read_ahead(read: Callable[[Task], Result], tasks: Iterable[Task]) -> Iterator[tuple[Task, Result]]:
    """Each task with what `read` gives for it. The next one is read in a thread while this one is in use."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        waiting = None
        for task in tasks:
            following = task, pool.submit(read, task)
            if waiting is not None:
                yield waiting[0], waiting[1].result()
            waiting = following
        if waiting is not None:
            yield waiting[0], waiting[1].result()
