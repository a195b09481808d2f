"""The bytes of pictures that are sent, under limits: of each, and of all that are held at one time."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request

MEBIBYTE = 1 << 20
MOST_BYTES = 32 * MEBIBYTE
"""Of one picture."""
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
