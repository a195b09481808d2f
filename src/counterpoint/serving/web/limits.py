"""What a server takes: bytes and pixels of a picture, bytes of all pictures together, and requests that wait."""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MEBIBYTE = 1 << 20
MOST_BYTES = 32 * MEBIBYTE
"""Of one picture."""
MOST_PIXELS = 1 << 26
"""8,192 × 8,192. It bounds what one picture takes to decode, about 1.3 GB at worst, however small its file is."""
MOST_TOGETHER = 128 * MEBIBYTE
"""Of all pictures that are being sent, or wait to be looked at."""
# The rest of a body that was refused is not read, so nothing else can come over that connection.
_CLOSE = {"Connection": "close"}


class Uploads:
    """Reads the bodies of requests, and counts what is held."""

    def __init__(self, most_bytes: int = MOST_BYTES, most_together: int = MOST_TOGETHER) -> None:
        self._most_bytes, self._most_together = most_bytes, most_together
        self.held = 0

    @asynccontextmanager
    async def body(self, request: Request) -> AsyncIterator[bytes]:
        """The request's body, which counts as held inside of the block. It is refused before too much of it is read."""
        self._check_length(request.headers.get("content-length", "0"))
        if request.headers.get("content-type", "").startswith("multipart/"):
            raise HTTPException(400, "the body is a form; send the picture file's bytes alone as the body", _CLOSE)
        size = 0
        pieces: list[bytes] = []
        try:
            async for piece in request.stream():
                size += len(piece)
                self.held += len(piece)
                self._check(size)
                pieces.append(piece)
            if not size:
                raise HTTPException(400, "there is no picture; send a picture file's bytes as the body of the request")
            content = b"".join(pieces)
            pieces.clear()  # or everything would be there twice
            yield content
        except ClientDisconnect:
            raise HTTPException(400, "the connection ended before the picture did") from None
        finally:
            self.held -= size

    def _check_length(self, length: str) -> None:
        """The server has seen to it that this is a number."""
        if int(length) > self._most_bytes:
            raise self._too_large()

    def _check(self, size: int) -> None:
        if size > self._most_bytes:
            raise self._too_large()
        if self.held > self._most_together:
            raise HTTPException(503, "too many pictures are being sent; try again", _CLOSE | {"Retry-After": "2"})

    def _too_large(self) -> HTTPException:
        most = self._most_bytes / MEBIBYTE
        return HTTPException(413, f"the picture's file is larger than {most:g} MiB, the most that is taken", _CLOSE)


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
