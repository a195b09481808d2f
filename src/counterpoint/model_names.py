"""What models are called, and the options that they may have. Nothing here needs torch or a library of models."""

import math
import re
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from counterpoint.errors import InputError, unknown

OWN = ("resnext29", "resnet", "vit")
"""counterpoint's own networks, beside the wide ResNets, which have their sizes in their names."""
LIBRARIES = {"timm": "timm", "torchvision": "torchvision", "hf": "transformers"}
"""The prefix of a library's models, and the package that they need."""
WITH_FIELDS = {"resnext29": ("cardinality", "base_width"), "resnet": ("depth", "width")}
"""Models whose options are fields of an experiment."""

_KINDS = (*OWN, "wide-resnet-28-10", *(f"{prefix}/NAME" for prefix in LIBRARIES), "MODULE:FUNCTION")
_WIDE_RESNET = re.compile(r"wide-resnet-(\d{1,4})-(\d{1,4})")
_FUNCTION = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def is_own(name: str) -> bool:
    """Whether the network is counterpoint's own."""
    return name in OWN or wide_resnet_size(name) is not None


def wide_resnet_size(name: str) -> tuple[int, int] | None:
    """Depth and widening of wide-resnet-DEPTH-WIDENING; None for another name."""
    found = _WIDE_RESNET.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def library_of(name: str) -> str | None:
    """The prefix of a library's model, such as timm; None for another name."""
    prefix, slash, rest = name.partition("/")
    return prefix if slash and rest and prefix in LIBRARIES else None


def is_function(name: str) -> bool:
    """Whether it names a function of the user's own, MODULE:FUNCTION. Such a function is imported only if the user
    typed its name.
    """
    return library_of(name) is None and ".py:" not in name and _FUNCTION.fullmatch(name) is not None


def check_model(name: str, options: Mapping[str, Any], pretrained: bool) -> None:
    """Raise unless a model may have this name and these options. Whether a library has the model is checked later."""
    if not (is_own(name) or library_of(name) or is_function(name)):
        raise _no_model(name)
    if pretrained and not library_of(name):
        libraries = ", ".join(f"{prefix}/" for prefix in LIBRARIES)
        raise InputError(
            f"pretrained is true, but {name} has no published weights; choose a model of {libraries}, "
            "or leave pretrained out"
        )
    if options and name in WITH_FIELDS:
        fields = " and ".join(WITH_FIELDS[name])
        raise InputError(f"{name} takes no model_options ({', '.join(options)}); set {fields} instead")
    for key, value in options.items():
        if not isinstance(key, str) or not _is_plain(value):
            raise InputError(
                f"model_options.{key} is {value!r}; it must be a text, a number, true, false, none or a list"
            )


def check_fields(named: Iterable[str], model: str) -> None:
    """Raise if a setting that was given belongs to another model, because it would have no effect."""
    for other, fields in WITH_FIELDS.items():
        for field in fields:
            if field in named and model != other:
                own = " and ".join(WITH_FIELDS[model]) if model in WITH_FIELDS else "model_options.KEY=VALUE"
                raise InputError(
                    f"{field} is a setting of {other} and has no effect on {model}; change {model} with {own}"
                )


def parse_option(text: str) -> Any:
    """The value of an option on the command line: none, true, false, a whole number, a number, numbers, or a text."""
    known = {"none": None, "null": None, "true": True, "false": False}
    if text.lower() in known:
        return known[text.lower()]
    if "," in text or (text.startswith("[") and text.endswith("]")):
        numbers = [_parse_number(part.strip()) for part in text.strip("[]").split(",")]
        return text if None in numbers else numbers
    number = _parse_number(text)
    return text if number is None else number


def _parse_number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        # An integer too large for a float cannot be a sensible option.
        return number if abs(number) <= sys.float_info.max else None
    return None


def _is_plain(value: Any) -> bool:
    """Whether the value is the same after it was written to JSON and read again."""
    if isinstance(value, list):
        return all(_is_plain(inner) for inner in value)
    return value is None or isinstance(value, str | bool | int) or (isinstance(value, float) and math.isfinite(value))


def _no_model(name: str) -> InputError:
    module, colon, function = name.rpartition(":")
    prefix, slash, rest = name.partition("/")
    if colon and (module.endswith(".py") or "/" in module):
        stem = re.split(r"[/\\]", module)[-1].removesuffix(".py")
        return InputError(f"model {name!r} names a file; give the module's name, as in {stem}:{function}")
    if colon:
        return InputError(f"model {name!r} is not MODULE:FUNCTION, as in mymodule:make_model")
    if slash and rest:
        return unknown("library of models", prefix, LIBRARIES)
    return unknown("model", name, _KINDS)
