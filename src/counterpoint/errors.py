"""The one exception for a wrong input: a value, a file, a command line. The one for work that was stopped. Checks of
names and numbers, how to tell that memory is used up, and words for messages.
"""

import difflib
import math
from collections.abc import Collection, Iterable, Sequence
from numbers import Integral, Real
from typing import TypeVar

Name = TypeVar("Name", bound=str)


class InputError(ValueError):
    """Something that you gave is wrong. The message names it, says what is allowed and what to do.

    The command line prints the message alone and exits with status 2.

    >>> from counterpoint import InputError, ece
    >>> try:
    ...     ece([0.8, 1.2], [True, False])
    ... except InputError as error:
    ...     print(error)
    confidence holds 1.2; every value must lie between 0 and 1
    """


class StoppedError(Exception):
    """Work was stopped because you or a limit of time asked for it. Nothing is wrong: the same call goes on."""


def unknown(kind: str, name: object, known: Iterable[str], listed_by: str = "") -> InputError:
    """The error for a name that is not one of `known`, with the nearest ones suggested.

    `listed_by` is a command that lists all names, for when they are too many for a message.
    """
    known = list(known)
    in_small = {one.casefold(): one for one in known}
    near = [in_small[one] for one in difflib.get_close_matches(shown(name).casefold(), in_small, n=3, cutoff=0.5)]
    hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    # A long list would bury the suggestion.
    is_long = len(known) > 12
    listed = "" if is_long and (near or listed_by) else f" (known: {', '.join(known)})"
    if is_long and listed_by and not near:
        listed = f"; `{listed_by}` lists the known ones"
    return InputError(f"unknown {kind} {shown(name)!r}{hint}{listed}")


def one_of(kind: str, name: object, known: Collection[Name]) -> Name:
    """`name`, which must be one of `known`."""
    for one in known:
        if one == name:
            return one
    raise unknown(kind, name, known)


def whole_number(name: str, value: object, least: int = 0, most: int | None = None) -> int:
    """`value` as Python's own int, within its limits. NumPy's are taken too; True is no number."""
    number = int(value) if not isinstance(value, bool) and isinstance(value, Integral) else None
    if number is None or number < least or (most is not None and number > most):
        allowed = f"of {least:,} or more" if most is None else f"from {least:,} to {most:,}"
        raise InputError(
            f"{name} is {shown(repr(value) if number is None else number)}; it must be a whole number {allowed}"
        )
    return number


def is_finite(value: object) -> bool:
    """Whether it is a number, Python's or NumPy's, that a float can hold, and not infinite."""
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:
        return False


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error says that memory ran out, from Python, NumPy or torch. None of these is imported for it."""
    words = ("can't allocate memory", "out of memory", "ALLOC_FAILED", "not enough memory")
    return isinstance(error, MemoryError) or any(word in str(error) for word in words)


def check_minutes(max_minutes: float | None) -> None:
    """Raise for a limit of time that is no number."""
    if max_minutes is None:
        return
    if isinstance(max_minutes, bool) or not isinstance(max_minutes, int | float) or not math.isfinite(max_minutes):
        raise InputError(f"max_minutes is {shown(max_minutes)}; it must be a number, or be left out for no limit")


def listed(names: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(names[:-1]), *names[-1:]] if len(names) > 1 else names)


def some(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def shown(value: object, most: int = 60) -> str:
    """A value, short enough for a message: a number may have thousands of digits, and a text may be a whole file."""
    try:
        text = " ".join(str(value).split())
    except (ValueError, RecursionError):  # Python writes out no integer of more than 4,300 digits
        return f"a value of the type {type(value).__name__}, too long to be shown"
    return text if len(text) <= most else f"{text[:most]}…"
