"""An experiment as a value: validated, read from and written to JSON, and changed by key=value."""

import dataclasses
import json
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from counterpoint.errors import InputError, one_of, shown, unknown
from counterpoint.model_names import check_fields, check_model, parse_option
from counterpoint.own_images import OwnImages
from counterpoint.policy import MemberPolicy


@dataclass(frozen=True)
class Experiment:
    """One row of a table: what is trained, on what, and how.

    The defaults are those of the paper's ensemble (docs/paper.md), except for `warmup_steps` and `decay_rs`, which the
    paper's rows set themselves.

    >>> from counterpoint import Experiment
    >>> experiment = Experiment("mine", "digits", model="resnet", num_members=2, epochs=5)
    >>> experiment.learning_rate
    0.1
    """

    name: str
    """What it is called in tables; a result counts for a row of the paper under that row's name only."""
    dataset: Literal["cifar10", "cifar100", "digits", "images"]
    """The images to train on; `images` are your own, named by --images."""
    train_on: Literal["split", "all"] = "split"
    """`split` keeps images to validate on: 5,000 of CIFAR's training images, which are also evaluated on, or those of
    your own images. `all` trains on everything but the test images, and evaluates on these."""
    images: OwnImages | None = None
    """How your own images are read and split; none for other data sets."""
    model: str = "resnext29"
    """The network: resnext29, resnet, wide-resnet-DEPTH-WIDENING, vit, timm/NAME, torchvision/NAME,
    hf/NAME-OR-FOLDER or MODULE:FUNCTION."""
    cardinality: int = 4
    """Of resnext29: the groups of its 3×3 convolutions."""
    base_width: int = 32
    """Of resnext29: the channels of a group in the first stage."""
    depth: int = 8
    """Of resnet: its layers, 8, 14, 20 and so on."""
    width: int = 16
    """Of resnet: the channels of the first stage."""
    model_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Keyword arguments of the model; resnext29 and resnet have the four fields above instead."""
    pretrained: bool = False
    """Start from the library's published weights."""
    num_members: int | None = 4
    """How many members there are; none is a plain network."""
    ensemble: Literal["batch", "deep"] = "batch"
    """`batch` members share their weights and have r and s of their own; `deep` members are networks that share
    nothing, each trained as it would be alone. `decay_rs` then has nothing to do."""
    batchnorm: Literal["shared", "per-member"] = "shared"
    """Whether members share BatchNorm's statistics and parameters, or each has its own."""
    init_std: float | None = 0.5
    """How far r and s lie from 1 at the start: their standard deviation. None is a small value, with which members
    start near the network they were made from."""
    policy: MemberPolicy = field(default_factory=MemberPolicy)
    epochs: int = 250
    """How often each image is trained on."""
    steps: int | None = None
    """How many steps there are in all; if given, it is used instead of `epochs`."""
    batch_size: int = 128
    """Images per step; each member sees a view of every one."""
    learning_rate: float = 0.1
    """SGD's learning rate at its highest, from which a cosine goes down."""
    final_learning_rate: float = 1e-6
    """The learning rate of the last step."""
    warmup_steps: int = 0
    """During these first steps the learning rate rises evenly to the value of the cosine schedule."""
    momentum: float = 0.9
    """Nesterov momentum; 0 is none."""
    weight_decay: float = 5e-4
    """How strongly weights are drawn towards 0."""
    decay_rs: bool = True
    """Whether weight decay applies to r and s."""
    decay_batchnorm: bool = True
    """Whether weight decay applies to BatchNorm's scales and shifts."""
    member_rate: float = 1.0
    """A factor on the learning rate of the parameters that each member has for itself: r, s and its biases."""
    starts_from: str | None = None
    """A hash of the weights of another run that training starts from, which --from RUN sets; none is a fresh start."""

    def __post_init__(self) -> None:
        _check_types(self)
        check_model(self.model, self.model_options, self.pretrained)
        for key in ("dataset", "train_on", "ensemble", "batchnorm"):
            one_of(key, getattr(self, key), get_args(get_type_hints(Experiment)[key]))
        for key, (least, most) in _WHOLE_NUMBERS.items():
            value = getattr(self, key)
            if value is not None and not least <= value <= most:
                raise InputError(f"{key} is {shown(value)}; it must be from {least:,} to {most:,}")
        for key in ("learning_rate", "final_learning_rate", "weight_decay", "member_rate", "init_std"):
            value = getattr(self, key)
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{key} is {value}; it must be a finite number of 0 or more")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum is {self.momentum}; it must be in [0, 1)")
        if (self.dataset == "images") != (self.images is not None):
            raise InputError(
                f"dataset is {self.dataset}, and images are {'set' if self.images else 'none'}; these settings are for "
                "your own images, which `counterpoint train --images PATH` trains on"
            )
        if self.ensemble == "deep":
            self._check_deep()
        self.policy.check_members(self.members)

    @property
    def members(self) -> int:
        """M, the number of members; it is 1 for a plain network."""
        return self.num_members or 1

    @property
    def has_factors(self) -> bool:
        """Whether there are r and s."""
        return self.num_members is not None and self.ensemble == "batch"

    def _check_deep(self) -> None:
        if self.num_members is None:
            raise InputError("ensemble is deep and num_members is none, a single network; set num_members to a number")
        for key in _BATCH_ENSEMBLE_ONLY:
            value, default = getattr(self, key), getattr(Experiment, key)
            if value != default:
                raise InputError(
                    f"{key} is {value} and ensemble is deep; the members of a deep ensemble have no r and s, and each "
                    f"has its own BatchNorm: leave {key} at {default}"
                )


MOST_STEPS = 999_999_999
"""A checkpoint's name has nine digits."""
_BATCH_ENSEMBLE_ONLY = ("batchnorm", "init_std", "member_rate")
_WHOLE_NUMBERS = {
    **dict.fromkeys(("cardinality", "base_width", "depth", "width"), (1, 10_000)),
    "num_members": (1, 1_000),
    "epochs": (1, 1_000_000),
    "batch_size": (1, 1_000_000),
    "steps": (1, MOST_STEPS),
    "warmup_steps": (0, MOST_STEPS),
}
"""What they may be. What is far above everything that was ever trained is a slip of the hand."""


def _check_types(experiment: Experiment) -> None:
    """Raise where a caller of the library gave a text for a number, say. `_build` has checked what comes from JSON."""
    for key, annotation in get_type_hints(Experiment).items():
        value = getattr(experiment, key)
        if not isinstance(value, _dataclass_in(annotation) or ()) and get_origin(annotation) is not Literal:
            _check(key, value, annotation)


def to_dict(experiment: Experiment) -> dict[str, Any]:
    """The experiment as JSON values: vectors become lists."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(experiment)))
    return values


def from_dict(values: Mapping[str, Any]) -> Experiment:
    """The experiment that `to_dict` gave, with every key and type checked."""
    if not isinstance(values, Mapping):
        raise InputError(f"the experiment is {shown(values)}; it must be an object with its settings")
    experiment: Experiment = _build(Experiment, values, "")
    return experiment


def override(experiment: Experiment, assignments: Sequence[str]) -> Experiment:
    """`experiment` with each `key=value` applied; nested keys are written with dots (policy.augmix.p=1).

    With pretrained=true and no word on init_std, that becomes none: members that start far apart forget the weights.
    With ensemble=deep, the settings of r and s that are not named get their defaults: a deep ensemble has none.
    """
    values, named = to_dict(experiment), set()
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator:
            raise InputError(f"{shown(assignment)!r} is not key=value")
        _assign(values, key.strip(), text.strip())
        named.add(key.strip())
    newly_pretrained = values["pretrained"] is True and not experiment.pretrained
    if newly_pretrained and values["ensemble"] == "batch" and "init_std" not in named:
        values["init_std"] = None
    if values["ensemble"] == "deep" and experiment.ensemble != "deep":
        values |= {key: getattr(Experiment, key) for key in _BATCH_ENSEMBLE_ONLY if key not in named}
    check_fields(named, values["model"])
    return from_dict(values)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys in which two experiments' values differ, as "key: old → new"."""
    flat_old, flat_new = dict(_flatten(old)), dict(_flatten(new))
    keys = dict.fromkeys([*flat_old, *flat_new])
    return [f"{k}: {flat_old.get(k)} → {flat_new.get(k)}" for k in keys if flat_old.get(k) != flat_new.get(k)]


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _assign(values: dict[str, Any], key: str, text: str) -> None:
    """Put the parsed `text` under the dotted `key` into nested dicts shaped as Experiment."""
    kind: Any = Experiment
    *parents, last = key.split(".")
    if parents == ["model_options"] and last:
        values["model_options"][last] = parse_option(text)
        return
    for name in parents:
        kind = _dataclass_in(get_type_hints(kind).get(name))
        if kind is None:
            raise _unknown_key(key)
        if values[name] is None:
            # Naming a part of an augmentation that is off turns it on with its defaults.
            values[name] = dataclasses.asdict(kind())
        values = values[name]
    hints = get_type_hints(kind)
    if last not in hints:
        raise _unknown_key(key)
    values[last] = _parse(key, text, hints[last])


def _unknown_key(key: str) -> InputError:
    return unknown("key", key, _all_keys(Experiment))


def _all_keys(kind: Any, prefix: str = "") -> list[str]:
    keys = []
    for name, annotation in get_type_hints(kind).items():
        nested = _dataclass_in(annotation)
        own = f"{prefix}{name}.KEY" if get_origin(annotation) is Mapping else prefix + name
        keys += _all_keys(nested, f"{prefix}{name}.") if nested else [own]
    return keys


def _options(annotation: Any) -> tuple[Any, ...]:
    """The alternatives of a union, or the type alone."""
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _dataclass_in(annotation: Any) -> Any:
    return next((option for option in _options(annotation) if dataclasses.is_dataclass(option)), None)


def _parse(key: str, text: str, annotation: Any) -> Any:
    """The value that `text` stands for on the command line. `_build` checks it later, with everything else."""
    options = _options(annotation)
    if types.NoneType in options and text.lower() in ("none", "null"):
        return None
    if bool in options and text.lower() in ("true", "false"):
        return text.lower() == "true"
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


def _build(kind: Any, values: Mapping[str, Any], prefix: str) -> Any:
    """A dataclass of the type `kind`. `prefix` is what the full names of its keys begin with."""
    hints = get_type_hints(kind)
    for key in values:
        if key not in hints:
            raise _unknown_key(prefix + key)
    missing = [f.name for f in dataclasses.fields(kind) if f.name not in values and _is_required(f)]
    if missing:
        raise InputError(f"{prefix + missing[0]} is missing from the experiment")
    return kind(**{key: _check(prefix + key, value, hints[key]) for key, value in values.items()})


def _is_required(f: "dataclasses.Field[Any]") -> bool:
    return f.default is dataclasses.MISSING and f.default_factory is dataclasses.MISSING


def _check(key: str, value: Any, annotation: Any) -> Any:
    """`value` as one of the annotation's types, or an error that names the key and what is allowed."""
    for option in _options(annotation):
        if option is types.NoneType and value is None:
            return None
        if dataclasses.is_dataclass(option) and isinstance(value, Mapping):
            return _build(option, value, f"{key}.")
        if get_origin(option) is Literal and value in get_args(option):
            return value
        if get_origin(option) is Mapping and isinstance(value, Mapping):
            return dict(value)
        if get_origin(option) is tuple and isinstance(value, list | tuple) and all(_is_number(v) for v in value):
            return tuple(float(v) for v in value)
        if option is float and _is_number(value):
            return float(value)
        if isinstance(option, type) and type(value) is option:
            return value
    raise InputError(f"{key}={shown(value)}: it must be {describe_type(annotation, key)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def describe_type(annotation: Any, key: str) -> str:
    """What a setting may be, in words."""
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "a text", types.NoneType: "none"}
    parts = []
    for option in _options(annotation):
        if get_origin(option) is Literal:
            parts.append("one of " + ", ".join(map(str, get_args(option))))
        elif get_origin(option) is tuple:
            parts.append("numbers separated by commas")
        elif get_origin(option) is Mapping:
            parts.append(f"set key by key (--set {key}.KEY=VALUE)")
        elif dataclasses.is_dataclass(option):
            parts.append(f"set by its parts ({', '.join(_all_keys(option, f'{key}.'))})")
        else:
            parts.append(names[option])
    return " or ".join(parts)
