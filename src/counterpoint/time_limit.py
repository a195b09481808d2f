"""A limit of time on work that is done piece by piece."""

import math
import time

from counterpoint.errors import check_minutes


class TimeLimit:
    """Tells, before each piece of work, whether it would probably end too late: whether the longest one so far would.

    The first piece is always done, so that every call gets further. It may take far longer than the others, because
    things are compiled in it, so it counts only until there is a second.
    """

    def __init__(self, minutes: float | None, started: float, margin: float = 0.0) -> None:
        """`started` is when the work began, by the monotonic clock. It must end `margin` seconds before the limit."""
        check_minutes(minutes)
        self._end = math.inf if minutes is None else started + 60 * minutes - margin
        self._asked: float | None = None
        self._done = 0
        self._longest = 0.0

    def is_near(self) -> bool:
        """To be asked before each piece of work."""
        now = time.monotonic()
        asked, self._asked = self._asked, now
        if asked is None:
            return False
        self._done += 1
        self._longest = now - asked if self._done <= 2 else max(self._longest, now - asked)
        return now + self._longest > self._end
