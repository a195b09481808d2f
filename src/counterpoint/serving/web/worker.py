"""One thread that computes, and a bounded number of requests that wait for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from starlette.exceptions import HTTPException

MOST_WAITING = 32

Result = TypeVar("Result")


class Worker:
    """Does one thing at a time, in the order asked for.

    Work that has begun goes on when nobody waits for it any more, since a thread cannot be stopped. Until it ends, all
    others wait: there is never more than one computation in memory. A request that gives up waiting leaves the queue.
    """

    def __init__(self, most_waiting: int = MOST_WAITING) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="predicting")
        self._turn = asyncio.Lock()
        self._most_waiting, self._waiting = most_waiting, 0

    async def do(self, work: Callable[[], Result]) -> Result:
        """What `work` returns or raises; 503 if too many wait already."""
        await self._wait_for_turn()
        done = asyncio.get_running_loop().run_in_executor(self._thread, work)
        done.add_done_callback(self._end_turn)
        return await asyncio.shield(done)

    async def _wait_for_turn(self) -> None:
        if self._turn.locked() and self._waiting >= self._most_waiting:
            words = f"{self._waiting} pictures are waiting already, and no more fit in the queue; try again"
            raise HTTPException(503, words, {"Retry-After": "2"})
        self._waiting += 1
        try:
            await self._turn.acquire()
        finally:
            self._waiting -= 1

    def _end_turn(self, done: asyncio.Future[Result]) -> None:
        if not done.cancelled():
            done.exception()  # it has been raised where the work was asked for, or nobody is there to hear of it
        self._turn.release()

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)
