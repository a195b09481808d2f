"""The values of a setting by its type: read from a text, checked, and described in words."""

import dataclasses
import math
import types
from collections.abc import Mapping
from numbers import Real
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from counterpoint.errors import InputError, shown, unknown


def all_keys(kind: Any, prefix: str = "") -> list[str]:
    """The full name of every setting in a dataclass, with those of the dataclasses inside it."""
    keys = []
    for name, annotation in get_type_hints(kind).items():
        nested = dataclass_in(annotation)
        own = f"{prefix}{name}.KEY" if get_origin(annotation) is Mapping else prefix + name
        keys += all_keys(nested, f"{prefix}{name}.") if nested else [own]
    return keys


def alternatives(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def dataclass_in(annotation: Any) -> Any:
    """The dataclass among the alternatives; None if there is none."""
    return next((option for option in alternatives(annotation) if dataclasses.is_dataclass(option)), None)


def parse(key: str, text: str, annotation: Any) -> Any:
    """The value that `text` stands for on the command line. `build` checks it later, with everything else."""
    options = alternatives(annotation)
    if types.NoneType in options and text.lower() in ("none", "null"):
        return None
    if bool in options and text.lower() in ("true", "false"):
        return text.lower() == "true"
    if any(dataclasses.is_dataclass(option) or get_origin(option) is Mapping for option in options):
        # Refused at once, because a later assignment may be for one of its parts.
        raise InputError(f"{key}={shown(text)}: it must be {describe_type(annotation, key)}")
    try:
        if any(get_origin(option) is tuple for option in options):
            return [float(part) for part in text.strip("[]()").split(",")]
        if int in options:
            return int(text)
        if float in options:
            return float(text)
    except ValueError:
        raise InputError(f"{key}={shown(text)}: it must be {describe_type(annotation, key)}") from None
    return text


def parse_fraction(text: str) -> float:
    """The fraction that a person writes as 1% or as 0.01. ValueError if it is no number."""
    number = text.strip()
    # 99.9 / 100 would not be 0.999
    return float(f"{number[:-1].strip()}e-2" if number.endswith("%") else number)


def build(kind: Any, values: Mapping[str, Any], prefix: str = "") -> Any:
    """A dataclass of the type `kind`, made from JSON values. The full names of its keys begin with `prefix`."""
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            raise unknown("key", prefix + key, all_keys(kind, prefix))
    missing = [f.name for f in dataclasses.fields(kind) if f.name not in values and _is_required(f)]
    if missing:
        raise InputError(f"{prefix + missing[0]} is missing from the experiment; every experiment must set it")
    return kind(**{key: check(prefix + key, value, hints[key]) for key, value in values.items()})


def _is_required(f: "dataclasses.Field[Any]") -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def settle(settings: Any, prefix: str = "") -> None:
    """Make each field of a frozen dataclass what its type says: settings are compared, hashed and written as JSON. A
    caller of the library may have given something that is nearly right, or a text for a number.
    """
    for key, annotation in get_type_hints(type(settings)).items():
        object.__setattr__(settings, key, check(prefix + key, getattr(settings, key), annotation))


def check(key: str, value: Any, annotation: Any) -> Any:
    """`value` as one of the annotation's types, or an error that names the key and what is allowed."""
    value = _of_python(value)
    for option in alternatives(annotation):
        if option is types.NoneType and value is None:
            return None
        if dataclasses.is_dataclass(option) and isinstance(value, Mapping):
            return build(option, value, f"{key}.")
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is Mapping and isinstance(value, Mapping):
            return dict(value)
        if get_origin(option) is tuple and isinstance(value, list | tuple) and all(map(_is_number, value)):
            return tuple(map(_as_float, value))
        if option is float and _is_number(value):
            return _as_float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    raise InputError(f"{key}={shown(value)}: it must be {describe_type(annotation, key)}")


def _of_python(value: Any) -> Any:
    """NumPy's number or array as Python's number or list."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _as_float(value: Any) -> float:
    """A whole number that is too large for a float counts as infinite, as it does on the command line. −0 becomes 0:
    the two are equal, and would be written, and so hashed, differently.
    """
    try:
        return float(value) + 0.0
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def describe_type(annotation: Any, key: str) -> str:
    """What a setting may be, in words."""
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", types.NoneType: "none"}
    parts = []
    for option in alternatives(annotation):
        if get_origin(option) is Literal:
            parts.append("one of " + ", ".join(map(str, get_args(option))))
        elif get_origin(option) is tuple:
            parts.append("numbers separated by commas (such as 0.5,1)")
        elif get_origin(option) is Mapping:
            parts.append(f"set key by key (--set {key}.KEY=VALUE)")
        elif nested := dataclass_in(option):
            keys = ", ".join(all_keys(nested, f"{key}."))
            parts.append(f"set by its parts ({keys}; in Python as {nested.__name__}(…))")
        else:
            parts.append(names[option])
    return " or ".join(parts)


def written(value: Any) -> str:
    """A value as a user would write it after `--set KEY=`."""
    if isinstance(value, list | tuple):
        return ",".join(map(written, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
