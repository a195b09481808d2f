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
    record: Record = _decode(kind, value, "", {})
    return record


def _has_default(value: Any, field: "Field[Any]") -> bool:
    if field.default_factory is not MISSING:
        return bool(getattr(value, field.name) == field.default_factory())
    return field.default is not MISSING and getattr(value, field.name) == field.default


def _decode(hint: Any, value: Any, where: str, counts: dict[str, int]) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        inner, limit = arguments
        decoded = _decode(inner, value, where, counts)
        _check_limit(limit, decoded, where, counts)
        return decoded
    if origin in (Union, UnionType):
        return None if value is None else _decode(_alternative(arguments, value), value, where, counts)
    if origin is Literal:
        _require(value in arguments, where, value, f"one of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        _require(isinstance(value, list), where, value, "a list")
        return tuple(_decode(arguments[0], inner, f"{where}[{i}]", counts) for i, inner in enumerate(value))
    if origin is Mapping:
        return _decode_mapping(arguments, value, where, counts)
    if is_dataclass(hint):
        return _decode_record(hint, value, where, counts)
    return _decode_plain(hint, value, where)


def _alternative(union: tuple[Any, ...], value: Any) -> Any:
    """Which of the types a value must have: a list's if it is a list, and otherwise the other's. None is not asked."""
    types = [one for one in union if one is not NoneType]
    return next((one for one in types if (get_origin(one) is tuple) == isinstance(value, list)), types[0])


def _decode_record(kind: Any, value: Any, where: str, counts: dict[str, int]) -> Any:
    _require(isinstance(value, dict), where, value, "an object")
    found = {}
    for name, hint, is_needed in _fields_of(kind):
        if name in value:
            found[name] = _decode(hint, value[name], _inside(where, name), counts)
        elif is_needed:
            raise FieldError(f"{_inside(where, name)} is missing")
    record = kind(**found)
    if problem := record.problem() if hasattr(kind, "problem") else "":
        raise FieldError(_inside(where, problem))
    return record


@cache
def _fields_of(kind: Any) -> tuple[tuple[str, Any, bool], ...]:
    """Each field's name and type, and whether it must be there."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        (field.name, hints[field.name], field.default is MISSING and field.default_factory is MISSING)
        for field in fields(kind)
    )


def _decode_mapping(arguments: tuple[Any, ...], value: Any, where: str, counts: dict[str, int]) -> Any:
    keys, inner = arguments
    _require(isinstance(value, dict), where, value, "an object")
    if get_origin(keys) is Literal:
        for name in get_args(keys):
            if name not in value:
                raise FieldError(f"{_inside(where, name)} is missing")
        value = {name: value[name] for name in get_args(keys)}
    if inner is Any:
        return value
    return {name: _decode(inner, one, _inside(where, name), counts) for name, one in value.items()}


def _decode_plain(hint: Any, value: Any, where: str) -> Any:
    if hint is float:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        _require(is_number and _is_finite(value), where, value, "a finite number")
        return float(value)
    if hint is int:
        _require(isinstance(value, int) and not isinstance(value, bool), where, value, "a whole number")
    elif hint is str:
        _require(isinstance(value, str), where, value, "a text")
    else:
        assert hint is Any, hint
    return value


def _check_limit(limit: Range | Sized, value: Any, where: str, counts: dict[str, int]) -> None:
    if isinstance(limit, Range):
        _require(limit.holds(value), where, value, f"between {limit.low:,g} and {limit.high:,g}")
    else:
        _require(bool(value), where, [], "a list that is not empty")
        expected = counts.setdefault(limit.name, len(value))
        if len(value) != expected:
            raise FieldError(f"{where} has {len(value)} values, and the file has {expected} {limit.name}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer that no float can hold
        return False


def _require(holds: bool, where: str, value: Any, allowed: str) -> None:
    if not holds:
        raise FieldError(f"{where or 'the whole'} is {shown(repr(value), _SHOWN)}, and must be {allowed}")


def _inside(where: str, name: str) -> str:
    return f"{where}.{name}" if where else name
