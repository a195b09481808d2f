"""A limit to how long a client may hold a connection without getting any further.

There are only so many connections. Whoever opened all of them, and then said nothing, would keep everybody else out.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MOST_SECONDS_CONNECTED = 70.0
"""For a request to arrive and to be answered, and then for the next one. It is more than an answer may take."""


class TimedConnection(H11Protocol):
    """A connection that ends when its time is over. Only a whole request and a whole answer give it new time."""

    _end: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._give_time()

    def data_received(self, data: bytes) -> None:
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._give_time()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._give_time()

    def connection_lost(self, exc: Exception | None) -> None:
        self._take_time()
        super().connection_lost(exc)

    def _give_time(self) -> None:
        self._take_time()
        if not self.transport.is_closing():
            self._end = self.loop.call_later(MOST_SECONDS_CONNECTED, self.transport.abort)

    def _take_time(self) -> None:
        if self._end is not None:
            self._end.cancel()
