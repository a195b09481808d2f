"""Whatever a stranger may put into a file: JSON of any kind, a valid file with one value changed, bytes turned over."""

import copy
import os
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_ASKED = os.environ.get("COUNTERPOINT_FUZZ")

FUZZED = settings(
    max_examples=int(_ASKED or 60),
    derandomize=not _ASKED,  # CI tries the same ones every time, `make fuzz` others
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)

_NUMBERS = st.one_of(
    st.integers(), st.sampled_from([0, -1, 10**9, 10**30, 2**63]), st.floats(), st.sampled_from([1e308, 1e-320])
)
SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, st.text(max_size=8), st.sampled_from(["..", "/etc/x", "a:b"]))
JSON = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """A valid JSON value in which one value, at any depth, is another, is missing, or has a companion."""
    whole = copy.deepcopy(value)
    at = whole
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not keys:
            return draw(JSON)
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and draw(st.booleans()):
            at = at[key]
            continue
        match draw(st.sampled_from(["other", "missing", "more"])):
            case "missing":
                del at[key]
            case "more" if isinstance(at, dict):
                at[draw(st.text(max_size=5))] = draw(JSON)
            case _:
                at[key] = draw(JSON)
        return whole


@st.composite
def turned_over(draw: st.DrawFn, content: bytes, first: int = 400) -> bytes:
    """The bytes with some of the first ones changed, or cut short: headers come first."""
    most = min(first, len(content)) - 1
    changes = draw(st.lists(st.tuples(st.integers(0, most), st.integers(0, 255)), max_size=4))
    damaged = bytearray(content)
    for place, byte in changes:
        damaged[place] = byte
    return bytes(damaged[: draw(st.sampled_from([len(damaged), most, len(damaged) - 1, len(damaged) // 2]))])
