import asyncio
from collections.abc import Sequence

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message

from counterpoint.serving.web.limits import Uploads


class Sent:
    """A request whose body comes in pieces, and how many of them were taken."""

    def __init__(self, pieces: Sequence[bytes], *, length: int | None = None, breaks_off: bool = False) -> None:
        self._messages: list[Message] = [
            {"type": "http.request", "body": piece, "more_body": breaks_off or i < len(pieces) - 1}
            for i, piece in enumerate(pieces)
        ]
        headers = [] if length is None else [(b"content-length", str(length).encode())]
        self.taken = 0
        self.request = Request({"type": "http", "method": "POST", "headers": headers}, self._receive)

    async def _receive(self) -> Message:
        self.taken += 1
        return self._messages.pop(0) if self._messages else {"type": "http.disconnect"}


async def read(uploads: Uploads, sent: Sent) -> bytes:
    async with uploads.body(sent.request) as content:
        assert uploads.held == len(content)
        return content


def refusal(uploads: Uploads, sent: Sent) -> HTTPException:
    with pytest.raises(HTTPException) as refused:
        asyncio.run(read(uploads, sent))
    return refused.value


def test_pieces_become_one() -> None:
    uploads = Uploads(most_bytes=6)
    assert asyncio.run(read(uploads, Sent([b"abc", b"", b"def"], length=6))) == b"abcdef"
    assert uploads.held == 0


def test_a_length_that_is_too_large_is_refused_unread() -> None:
    sent = Sent([b"x"], length=7)
    error = refusal(Uploads(most_bytes=6), sent)
    assert (error.status_code, sent.taken) == (413, 0)
    assert error.headers == {"Connection": "close"}


def test_a_body_without_a_length_is_refused_as_soon_as_it_is_too_large() -> None:
    uploads, sent = Uploads(most_bytes=3 << 20), Sent([bytes(1 << 20)] * 100)
    error = refusal(uploads, sent)
    assert (error.status_code, sent.taken, uploads.held) == (413, 4, 0)
    assert error.detail == "the picture's file is larger than 3 MiB, the most that is taken"


def test_all_together_are_bounded() -> None:
    uploads = Uploads(most_bytes=10, most_together=15)

    async def one_holds_while_another_comes() -> None:
        async with uploads.body(Sent([bytes(8)]).request):
            assert (await read_ignoring_count(Sent([bytes(7)]))) == bytes(7)
            with pytest.raises(HTTPException) as refused:
                await read_ignoring_count(Sent([bytes(8)]))
            assert refused.value.status_code == 503
            assert refused.value.headers == {"Connection": "close", "Retry-After": "2"}
            assert uploads.held == 8

    async def read_ignoring_count(sent: Sent) -> bytes:
        async with uploads.body(sent.request) as content:
            return content

    asyncio.run(one_holds_while_another_comes())
    assert uploads.held == 0


def test_an_empty_body_and_one_that_breaks_off_are_told() -> None:
    assert "there is no picture" in refusal(Uploads(), Sent([b""])).detail
    uploads = Uploads()
    error = refusal(uploads, Sent([b"abc"], breaks_off=True))
    assert (error.status_code, uploads.held) == (400, 0)
    assert error.detail == "the connection ended before the picture did"
