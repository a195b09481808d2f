"""Dataclasses as JSON and back: what is left out, what must be there, and how a wrong value is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from counterpoint.records.codec import FieldError, Range, Sized, decode, encode


@dataclass(frozen=True)
class Inner:
    share: Annotated[float, Range(0, 1)]
    note: str | None = None


@dataclass(frozen=True)
class Outer:
    count: int
    inner: Inner
    kind: Literal["one", "two"]
    pair: Mapping[Literal["left", "right"], Inner]
    first: Annotated[tuple[float, ...], Sized("parts")]
    second: Annotated[tuple[str, ...], Sized("parts")] = ()
    named: Mapping[str, Inner] = field(default_factory=dict)
    free: Mapping[str, Any] | None = None
    limited: Annotated[int, Range(0, 9)] | None = None
    for_all_or_each: float | tuple[float, ...] | None = None

    def problem(self) -> str:
        return "count is 13, and nobody wants that" if self.count == 13 else ""


def values(**changes: Any) -> dict[str, Any]:
    half = {"share": 0.5}
    return {
        "count": 2,
        "inner": half,
        "kind": "one",
        "pair": {"left": half, "right": half},
        "first": [1.5, 2.5],
    } | changes


def test_what_has_its_default_is_left_out() -> None:
    record = decode(Outer, values())
    assert record == Outer(
        2, Inner(0.5), "one", {"left": Inner(0.5), "right": Inner(0.5)}, (1.5, 2.5), (), {}, None, None
    )
    assert encode(record) == values()


def test_everything_comes_back() -> None:
    given = values(
        inner={"share": 0.25, "note": "a note"}, second=["a", "b"], named={"x": {"share": 1.0}}, free={"y": [1, {}]}
    )
    assert encode(decode(Outer, given)) == given


@pytest.mark.parametrize(("given", "record"), [(1, 1.0), ([1, 2], (1.0, 2.0)), ([], ()), (None, None)])
def test_a_field_may_hold_one_value_or_a_list(given: object, record: object) -> None:
    found = decode(Outer, values(for_all_or_each=given)).for_all_or_each
    assert (found, type(found)) == (record, type(record))


def test_numbers_can_be_rounded() -> None:
    record = decode(Outer, values(inner={"share": 0.123456789}))
    assert encode(record, lambda number: round(number, 3))["inner"] == {"share": 0.123}


def test_a_whole_number_is_a_float_where_one_is_needed() -> None:
    record = decode(Outer, values(first=[1, 2]))
    assert [type(value) for value in record.first] == [float, float]


def test_rounding_errors_are_within_a_range() -> None:
    assert decode(Inner, {"share": 1 + 1e-12}).share > 1


def test_what_nobody_knows_is_ignored() -> None:
    assert decode(Outer, values(of_a_later_version=1)) == decode(Outer, values())


def test_literal_keys_come_in_their_order() -> None:
    half = {"share": 0.5}
    assert list(decode(Outer, values(pair={"right": half, "left": half})).pair) == ["left", "right"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"count": 2.0}, "count is 2.0, and must be a whole number"),
        ({"count": True}, "count is True, and must be a whole number"),
        ({"count": 13}, "count is 13, and nobody wants that"),
        ({"inner": []}, r"inner is \[\], and must be an object"),
        ({"inner": {}}, "inner.share is missing"),
        ({"inner": {"share": None}}, "inner.share is None, and must be a finite number"),
        ({"inner": {"share": True}}, "inner.share is True, and must be a finite number"),
        ({"inner": {"share": float("nan")}}, "inner.share is nan, and must be a finite number"),
        ({"inner": {"share": float("inf")}}, "inner.share is inf, and must be a finite number"),
        ({"inner": {"share": 10**400}}, r"inner.share is 1000.*…, and must be a finite number"),
        ({"inner": {"share": 1.01}}, "inner.share is 1.01, and must be between 0 and 1"),
        ({"inner": {"share": 0, "note": 3}}, "inner.note is 3, and must be a text"),
        ({"kind": "three"}, "kind is 'three', and must be one of 'one', 'two'"),
        ({"kind": []}, r"kind is \[\], and must be one of 'one', 'two'"),
        ({"pair": {"left": {"share": 1}}}, "pair.right is missing"),
        ({"pair": "both"}, "pair is 'both', and must be an object"),
        ({"first": []}, r"first is \[\], and must be a list that is not empty"),
        ({"first": {}}, "first is {}, and must be a list"),
        ({"first": [1, "b"]}, r"first\[1\] is 'b', and must be a finite number"),
        ({"second": ["a"]}, "second has 1 values, and the file has 2 parts"),
        ({"named": {"x": {}}}, "named.x.share is missing"),
        ({"limited": 10}, "limited is 10, and must be between 0 and 9"),
        ({"for_all_or_each": "x"}, "for_all_or_each is 'x', and must be a finite number"),
        ({"for_all_or_each": [1, [2]]}, r"for_all_or_each\[1\] is \[2\], and must be a finite number"),
    ],
)
def test_a_wrong_value_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=f"^{message}$"):
        decode(Outer, values(**changes))


def test_a_file_that_is_no_object_is_named_as_a_whole() -> None:
    with pytest.raises(FieldError, match=r"^the whole is \['a'\], and must be an object$"):
        decode(Outer, ["a"])
