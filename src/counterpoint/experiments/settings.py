"""Every setting that `--set` can change: what it may be, its default, and what it means.

The meaning is the docstring under the field, read from the source: a setting is explained where it is defined.
"""

import ast
import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import NoneType
from typing import Any, get_args, get_type_hints

from counterpoint.config import Experiment, describe_type

_END_OF_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")


@dataclass(frozen=True)
class Setting:
    """A setting, with its default as one would write it after the key."""

    key: str
    may_be: str
    default: str | None  # None where every experiment has to say it, empty for keys that a user names
    meaning: str

    @property
    def group(self) -> str:
        """What the keys of its neighbours begin with too; empty for those of the experiment itself."""
        return self.key.rpartition(".")[0]

    @property
    def line(self) -> str:
        """The first sentence of its meaning."""
        return _END_OF_SENTENCE.split(self.meaning)[0]


def all_settings() -> list[Setting]:
    """In the order of their definition, each augmentation before its parts."""
    return list(_settings(Experiment, ""))


def _settings(kind: Any, prefix: str) -> Iterator[Setting]:
    hints, meanings = get_type_hints(kind), _meanings(kind)
    for field in dataclasses.fields(kind):
        if field.default_factory is dict:
            may_be = "what the model takes under KEY: a text, a number, true, false or none"
            yield Setting(f"{prefix}{field.name}.KEY", may_be, "", meanings.get(field.name, ""))
            continue
        key, options = prefix + field.name, get_args(hints[field.name]) or (hints[field.name],)
        nested = next((option for option in options if dataclasses.is_dataclass(option)), None)
        if nested is None or NoneType in options:
            may_be = "its parts, or none" if nested else describe_type(hints[field.name], key)
            yield Setting(key, may_be, _default(field), meanings.get(field.name, ""))
        if nested is not None:
            yield from _settings(nested, f"{key}.")


def _meanings(kind: Any) -> dict[str, str]:
    """The docstrings under the fields of a dataclass, each as one line."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in pairwise(definition.body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = " ".join(str(ast.literal_eval(text.value)).split())
    return found


def _default(field: "dataclasses.Field[Any]") -> str | None:
    if field.default is dataclasses.MISSING:
        return None
    return _written(field.default)


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(map(_written, value))
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
