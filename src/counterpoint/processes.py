"""Work spread over processes of one thread each."""

import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import connection, current_process, get_context, parent_process
from typing import Protocol, TypeVar

from counterpoint.errors import InputError
from counterpoint.threads import usable_cpus

Task = TypeVar("Task")
Result = TypeVar("Result")

_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
_GUARD = 'a script that starts processes must have its code under `if __name__ == "__main__":`'
_AHEAD = 4
"""So many tasks per process are under way. More would hold their data in memory, fewer would leave a process idle."""


class Mapper(Protocol):
    """`map`, for one argument."""

    def __call__(self, work: Callable[[Task], Result], tasks: Iterable[Task], /) -> Iterable[Result]: ...


def count_workers(workers: int | None) -> int:
    """How many processes to start: as many as asked for, and by default one per CPU of this process.

    To be asked before a lock is taken. A process that reads a script without `if __name__ == "__main__":` comes here
    too, and would wait for the lock of the very process that waits for it.
    """
    if getattr(current_process(), "_inheriting", False):
        raise InputError(_GUARD)
    if workers is not None and workers < 1:
        raise InputError(f"workers is {workers}; it must be 1 or more")
    return workers or usable_cpus()


@contextmanager
def parallel_map(workers: int) -> Iterator[Mapper]:
    """`map` over `workers` processes, in order, where a task is made shortly before it is worked on.

    One worker is this process. More are spawned, since a fork of torch's threads may hang. A script that calls this
    therefore needs the usual `if __name__ == "__main__":`.
    """
    if workers == 1:
        yield map
        return
    with environment_with(_ONE_THREAD):
        pool = ProcessPoolExecutor(workers, get_context("spawn"), initializer=_begin)
        try:
            yield lambda work, tasks: _map_ahead(pool, work, tasks, _AHEAD * workers)
        finally:
            pool.shutdown(cancel_futures=True)


def _map_ahead(
    pool: ProcessPoolExecutor, work: Callable[[Task], Result], tasks: Iterable[Task], ahead: int
) -> Iterator[Result]:
    waiting: deque[Future[Result]] = deque()
    try:
        for task in tasks:
            waiting.append(pool.submit(work, task))
            if len(waiting) == ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise InputError(
            f"a process that was started for this work has ended early; either there was too little memory, or {_GUARD}"
        ) from None


def _begin() -> None:
    """Ctrl-C reaches every process. The workers ignore it and print no traceback; their parent ends the work."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":
        threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for its next task for ever."""
    if parent := parent_process():
        connection.wait([parent.sentinel])
        os._exit(1)


@contextmanager
def environment_with(values: Mapping[str, str]) -> Iterator[None]:
    """Inside, these variables of the environment have these values."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
