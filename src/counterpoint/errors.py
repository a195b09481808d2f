"""The one exception for a wrong input: a value, a file, a command line."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Something the user gave is wrong. The message names it, says what is allowed and what to do.

    The command line prints the message alone and exits with status 2.
    """


def unknown(kind: str, name: object, known: Iterable[str]) -> InputError:
    """The error for a name that is not one of `known`, with the nearest ones suggested."""
    known = list(known)
    near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
    # A long list would bury the suggestion.
    listed = "" if near and len(known) > 12 else f" (known: {', '.join(known)})"
    return InputError(f"unknown {kind} {name!r}{hint}{listed}")
