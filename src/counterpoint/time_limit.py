"""A limit of time on work that is done piece by piece."""

import math
import time

from counterpoint.errors import InputError


class TimeLimit:
    """Tells, before each piece of work, whether it would probably end too late: whether the longest one so far would.

    The first piece is always done, so that every call gets further.
    """

    def __init__(self, minutes: float | None, started: float, margin: float = 0.0) -> None:
        """`started` is when the work began, by the monotonic clock. It must end `margin` seconds before the limit."""
        if minutes is not None and not math.isfinite(minutes):
            raise InputError(f"max_minutes is {minutes}; leave it out for no limit")
        self._end = math.inf if minutes is None else started + 60 * minutes - margin
        self._asked: float | None = None
        self._longest = 0.0

    def is_near(self) -> bool:
        """To be asked before each piece of work."""
        now = time.monotonic()
        if self._asked is None:
            self._asked = now
            return False
        self._longest = max(self._longest, now - self._asked)
        self._asked = now
        return now + self._longest > self._end
