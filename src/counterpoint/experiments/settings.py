"""Every setting that `--set` can change: the values it may have, its default, and its meaning.

The meaning is read from the docstring under the field, so a setting is explained where it is defined.
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

from counterpoint.config import WHOLE_NUMBERS, Experiment
from counterpoint.setting_types import dataclass_in, describe_type, written

_END_OF_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z`])")
_RATE = "a number of 0 or more"
_CHANCE = "a number from 0 to 1"
_SHARE = "a number of at least 0 and below 1"
_ALLOWED = {
    "model": "a name, such as resnet or timm/resnet50",
    "depth": "8, 14, 20 and so on, which is 6n + 2",
    **dict.fromkeys(("learning_rate", "final_learning_rate", "weight_decay", "member_rate"), _RATE),
    "init_std": f"{_RATE}, or none",
    "momentum": _SHARE,
    "images.size": "a whole number from 1 to 4,096",
    "images.val": f"{_SHARE}, and below 1 together with images.test",
    "images.test": f"{_SHARE}, and below 1 together with images.val",
    "images.split_seed": "a whole number of 0 or more",
    "policy.crop_padding": "a whole number from 0 to 4,096",
    "policy.crop_scale": "two numbers above 0 and at most 1, such as 0.25,1, or none",
    "policy.augmix.severity": "numbers separated by commas, each 0 or from 0.1 to 10",
    "policy.augmix.p": _CHANCE,
    "policy.augmix.beta": "a number above 0",
    "policy.augmix.jsd": _RATE,
    "policy.adversarial.severity": "numbers separated by commas, each 0 or more",
    "policy.adversarial.p": "a number above 0 and at most 1",
    "policy.stochastic_depth.drop_rate": "numbers separated by commas, each at least 0 and below 1",
}
"""The ranges that the classes of these settings check. The tests try the ends of each range."""


@dataclass(frozen=True)
class Setting:
    """A setting. Its default is written as a user would write it after `--set KEY=`."""

    key: str
    may_be: str
    default: str | None  # None if every experiment must set it; empty for model_options.KEY
    meaning: str

    @property
    def group(self) -> str:
        """The part of the key before the last dot; it is empty for settings of the experiment itself."""
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
            may_be = "what the model takes as KEY: a text, a number, numbers separated by commas, true, false or none"
            yield Setting(f"{prefix}{field.name}.KEY", may_be, "", meanings.get(field.name, ""))
            continue
        key, nested = prefix + field.name, dataclass_in(hints[field.name])
        if nested is None or NoneType in get_args(hints[field.name]):
            may_be = "none, or set by its parts" if nested else _allowed(key, hints[field.name])
            yield Setting(key, may_be, _default(field), meanings.get(field.name, ""))
        if nested is not None:
            yield from _settings(nested, f"{key}.")


def _allowed(key: str, annotation: Any) -> str:
    if key in _ALLOWED or key not in WHOLE_NUMBERS:
        return _ALLOWED.get(key) or describe_type(annotation, key)
    least, most = WHOLE_NUMBERS[key]
    return f"a whole number from {least:,} to {most:,}" + (", or none" if NoneType in get_args(annotation) else "")


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
    return None if field.default is dataclasses.MISSING else written(field.default)
