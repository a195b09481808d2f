"""Frozen dataclasses as JSON, and back with every value checked.

A field without a default must be in the file. One with a default may be missing, and is left out where it has that
default. A mapping whose keys are a Literal has exactly those keys. What a field's type cannot say, a method `problem`
says: it returns a sentence that begins with a field's name, or "" if all is well. A union may have None, one kind of
list and one other type.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from counterpoint.errors import shown

Record = TypeVar("Record")
Decoder = Callable[[Any, str, dict[str, int]], Any]
"""Takes a value, its place in the file, and how long lists of a name are."""

_ROUNDING = 1e-9
_SHOWN = 40  # characters of a wrong value


@dataclass(frozen=True)
class Range:
    """A number's least and greatest value. A mean of numbers within it can lie outside by a rounding error."""

    low: float
    high: float

    def holds(self, number: float) -> bool:
        return self.low - _ROUNDING <= number <= self.high + _ROUNDING


@dataclass(frozen=True)
class Sized:
    """Lists that have the same name here are equally long within a file, and not empty."""

    name: str


class FieldError(Exception):
    """A value that is not what its field needs; the message begins with the field's place, such as clean.members[1]."""


def encode(value: Any, number: Callable[[float], float] = lambda number: number) -> Any:
    """The value as `json` takes it. `number` is applied to every float, for instance to round it."""
    if is_dataclass(value):
        kept = ((field.name, getattr(value, field.name)) for field in fields(value) if not _has_default(value, field))
        return {name: encode(inner, number) for name, inner in kept}
    if isinstance(value, Mapping):
        return {key: encode(inner, number) for key, inner in value.items()}
    if isinstance(value, tuple | list):
        return [encode(inner, number) for inner in value]
    return number(value) if isinstance(value, float) else value


def decode(kind: type[Record], value: Any) -> Record:
    """The record of this kind that `encode` made `value` from; `FieldError` for anything else."""
    record: Record = _record(kind)(value, "", {})
    return record


def _has_default(value: Any, field: "Field[Any]") -> bool:
    if field.default_factory is not MISSING:
        return bool(getattr(value, field.name) == field.default_factory())
    return field.default is not MISSING and getattr(value, field.name) == field.default


@cache
def _decoder(hint: Any) -> Decoder:
    """Made once for each type: a file has thousands of values, and few types."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _limited(_decoder(arguments[0]), arguments[1])
    if origin in (Union, UnionType):
        return _either([argument for argument in arguments if argument is not NoneType])
    if origin is Literal:
        return _one_of(arguments)
    if origin is tuple:
        return _list_of(_decoder(arguments[0]))
    if origin is Mapping:
        return _mapping(*arguments)
    return _record(hint) if is_dataclass(hint) else _PLAIN[hint]


def _limited(inner: Decoder, limit: Range | Sized) -> Decoder:
    def decode(value: Any, where: str, counts: dict[str, int]) -> Any:
        decoded = inner(value, where, counts)
        if isinstance(limit, Sized):
            _check_size(limit, decoded, where, counts)
        elif not limit.holds(decoded):
            raise _wrong(where, decoded, f"between {limit.low:,g} and {limit.high:,g}")
        return decoded

    return decode


def _check_size(limit: Sized, value: Any, where: str, counts: dict[str, int]) -> None:
    if not value:
        raise _wrong(where, [], "a list that is not empty")
    expected = counts.setdefault(limit.name, len(value))
    if len(value) != expected:
        raise FieldError(f"{where} has {len(value)} values, and the file has {expected} {limit.name}")


def _either(types: list[Any]) -> Decoder:
    """For None and one or two types: a list's if the value is a list, and otherwise the other's."""
    by_kind = {get_origin(one) is tuple: _decoder(one) for one in types}
    first = _decoder(types[0])

    def decode(value: Any, where: str, counts: dict[str, int]) -> Any:
        return None if value is None else by_kind.get(isinstance(value, list), first)(value, where, counts)

    return decode


def _one_of(allowed: tuple[Any, ...]) -> Decoder:
    def decode(value: Any, where: str, _: dict[str, int]) -> Any:
        if value not in allowed:
            raise _wrong(where, value, f"one of {', '.join(map(repr, allowed))}")
        return value

    return decode


def _list_of(inner: Decoder) -> Decoder:
    def decode(value: Any, where: str, counts: dict[str, int]) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise _wrong(where, value, "a list")
        return tuple(inner(one, f"{where}[{i}]", counts) for i, one in enumerate(value))

    return decode


def _mapping(keys: Any, inner: Any) -> Decoder:
    needed = get_args(keys) if get_origin(keys) is Literal else None
    decode_one = _decoder(inner)

    def decode(value: Any, where: str, counts: dict[str, int]) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        for name in needed or ():
            if name not in value:
                raise FieldError(f"{_inside(where, name)} is missing")
        return {name: decode_one(value[name], _inside(where, name), counts) for name in needed or value}

    return decode


def _record(kind: Any) -> Decoder:
    def decode(value: Any, where: str, counts: dict[str, int]) -> Any:
        if not isinstance(value, dict):
            raise _wrong(where, value, "an object")
        found = {}
        for name, decode_one, is_needed in _fields_of(kind):
            if name in value:
                found[name] = decode_one(value[name], _inside(where, name), counts)
            elif is_needed:
                raise FieldError(f"{_inside(where, name)} is missing")
        record = kind(**found)
        if problem := record.problem() if hasattr(kind, "problem") else "":
            raise FieldError(_inside(where, problem))
        return record

    return decode


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, Decoder, bool], ...]:
    """Each field's name and decoder, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (field.name, _decoder(hints[field.name]), field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    )


def _number(value: Any, where: str, _: dict[str, int]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _is_finite(value):
        raise _wrong(where, value, "a finite number")
    return float(value)


def _whole_number(value: Any, where: str, _: dict[str, int]) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(where, value, "a whole number")
    return value


def _text(value: Any, where: str, _: dict[str, int]) -> str:
    if not isinstance(value, str):
        raise _wrong(where, value, "a text")
    return value


_PLAIN: dict[Any, Decoder] = {float: _number, int: _whole_number, str: _text, Any: lambda value, _, __: value}


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _wrong(where: str, value: Any, allowed: str) -> FieldError:
    return FieldError(f"{where or 'the whole'} is {shown(repr(value), _SHOWN)}, and must be {allowed}")


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
