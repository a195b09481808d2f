"""An experiment: all settings of a training, checked, read from and written to JSON, and changed by key=value."""

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from counterpoint.errors import InputError, shown, unknown
from counterpoint.model_names import check_fields, check_model, parse_option
from counterpoint.own_images import OwnImages
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.setting_types import all_keys, build, dataclass_in, parse, settle


class _Usual(float):
    """A default that depends on another setting. A number that is given is a plain float, so the two can be told
    apart. Hashes and tables see the number itself.
    """


@dataclass(frozen=True)
class Experiment:
    """All settings of a training: the network, the images, the augmentations and the optimiser.

    Each row of the paper's tables is an experiment. The defaults are those of the paper's ensemble (docs/paper.md),
    except for `warmup_steps` and `decay_rs`, which the paper's rows set themselves. Some defaults depend on other
    settings, as these say. `dataclasses.replace` keeps what the experiment has; `override(experiment,
    ["optimiser=adamw"])`, from `counterpoint.config`, changes them as `--set` does.

    >>> from counterpoint import Experiment
    >>> experiment = Experiment("mine", "digits", model="resnet", num_members=2, epochs=5)
    >>> experiment.learning_rate
    0.1
    """

    name: str
    """The name of the run in tables and reports. A result counts as a row of the paper only under that row's name."""
    dataset: Literal["cifar10", "cifar100", "digits", "images"]
    """The images to train on; `digits` are scikit-learn's handwritten digits, `images` your own (--images PATH)."""
    train_on: Literal["split", "all"] = "split"
    """Whether some images are kept out of training for validation (`split`), or none are (`all`). With `split`, CIFAR
    keeps 5,000 training images out, and `evaluate` measures on these. The digits keep 449 out, your own images the
    share `images.val`; for both, `evaluate` measures on the test images. With `all`, the network trains on every image
    but the test images, and `evaluate` measures on the test images."""
    images: OwnImages | None = None
    """How your own images are read and split; it is none for the other data sets."""
    model: str = "resnext29"
    """The network: one of counterpoint's own, one of a library (timm, torchvision, transformers), or a function of
    yours. The names are resnext29, resnet, vit, wide-resnet-DEPTH-WIDENING (such as wide-resnet-28-10), timm/NAME,
    torchvision/NAME, hf/NAME-OR-FOLDER and MODULE:FUNCTION."""
    cardinality: int = 4
    """Only for resnext29: how many groups its 3×3 convolutions have."""
    base_width: int = 32
    """Only for resnext29: how many channels each group has in the first stage."""
    depth: int = 8
    """Only for resnet: how many layers it has."""
    width: int = 16
    """Only for resnet: how many channels its first stage has."""
    model_options: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """A keyword argument of the model. resnext29 and resnet have the settings cardinality, base_width, depth and width
    instead."""
    pretrained: bool = False
    """Whether training starts from the weights that the library publishes for the model. Only models of timm,
    torchvision and transformers have them. The default of `init_std` is then none."""
    num_members: int | None = 4
    """How many members the ensemble has; none trains a single network."""
    ensemble: Literal["batch", "deep"] = "batch"
    """The kind of ensemble: BatchEnsemble (`batch`) or deep ensemble (`deep`). The members of a BatchEnsemble share
    their weights; each has only two vectors per layer of its own, r and s. The members of a deep ensemble share
    nothing: each trains as it would alone. `decay_rs` then has no effect."""
    batchnorm: Literal["shared", "per-member"] = "shared"
    """Whether the members of a BatchEnsemble share BatchNorm's statistics and parameters, or each has its own."""
    init_std: float | None = _Usual(0.5)
    """The standard deviation of r and s at the start of training, around a mean of 1. A large value makes the members
    differ from the first step. none means 0.05, with which each member starts near the network it was made from.
    This is the default with `pretrained`."""
    policy: MemberPolicy = field(default_factory=MemberPolicy)
    epochs: int = 250
    """How many times training goes through all training images."""
    steps: int | None = None
    """How many training steps there are in all; if it is set, `epochs` has no effect."""
    batch_size: int = 128
    """How many images a training step takes; every member sees its own view of each of them."""
    optimiser: Literal["sgd", "adamw"] = "sgd"
    """The rule that updates the weights: SGD, as in the paper, or AdamW, as usual for transformers and
    ConvNeXts. With AdamW the default of `learning_rate` is 0.001, and that of `weight_decay` 0.05."""
    learning_rate: float = _Usual(0.1)
    """The highest learning rate; it then falls along a cosine to `final_learning_rate`."""
    final_learning_rate: float = 1e-6
    """The learning rate of the last training step."""
    warmup_steps: int = 0
    """Over this many first steps the learning rate rises in a straight line to the cosine; 0 starts on the cosine."""
    momentum: float = 0.9
    """The Nesterov momentum of SGD; 0 turns it off. AdamW keeps this share of its mean gradient from step to step."""
    weight_decay: float = _Usual(5e-4)
    """The weight decay: how strongly each step pulls the weights towards 0. SGD adds the weights times this number to
    the gradients. AdamW takes it apart from them, so it needs a larger one."""
    decay_rs: bool = True
    """Whether weight decay also applies to r and s, the vectors that each member has for itself."""
    decay_linear_rs: bool | None = None
    """Whether weight decay also applies to r and s of linear layers; none means the value of `decay_rs`. BatchNorm
    undoes a change of scale of the layer before it. After the last linear layer nothing does, so its r and s can make
    the logits large."""
    decay_batchnorm: bool = True
    """Whether weight decay also applies to the weights and biases of BatchNorm layers."""
    member_rate: float = 1.0
    """What the learning rate is multiplied by for the parameters that each member has for itself: r, s and biases."""
    starts_from: str | None = None
    """The hash of the weights that training starts from. `train --from RUN` sets it, and in Python
    `train(…, start=RUN)`. none means new weights, or published ones with `pretrained`."""

    def __post_init__(self) -> None:
        self._take_usual()
        settle(self)
        check_model(self.model, self.model_options, self.pretrained)
        for key, (least, most) in WHOLE_NUMBERS.items():
            value = getattr(self, key)
            if value is not None and not least <= value <= most:
                raise InputError(f"{key} is {shown(value)}; it must be from {least:,} to {most:,}")
        for key in ("learning_rate", "final_learning_rate", "weight_decay", "member_rate", "init_std"):
            value = getattr(self, key)
            if value is not None and not 0 <= value < float("inf"):
                raise InputError(f"{key} is {value}; it must be a finite number of 0 or more")
        if not 0 <= self.momentum < 1:
            raise InputError(f"momentum is {self.momentum}; it must be at least 0 and below 1")
        if (self.dataset == "images") != (self.images is not None):
            raise InputError(
                f"dataset is {self.dataset}, and the settings images.… are {'given' if self.images else 'missing'}; "
                "they belong to your own images: train on these with `counterpoint train --images PATH`, "
                "or with own_experiment and load_images in Python"
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

    def _take_usual(self) -> None:
        """Set what was not given and depends on other settings."""
        others: dict[str, float | None] = {**ADAMW} if self.optimiser == "adamw" else {}
        if self.pretrained and self.ensemble == "batch":
            others["init_std"] = None  # members that start far apart would lose what the weights know
        for key, value in others.items():
            if isinstance(getattr(self, key), _Usual):
                object.__setattr__(self, key, value)

    def _check_deep(self) -> None:
        if self.num_members is None:
            raise InputError(
                "ensemble is deep, but num_members is none, which means a single network; set num_members to a number"
            )
        for key in _BATCH_ENSEMBLE_ONLY:
            value, default = getattr(self, key), getattr(Experiment, key)
            if value != default:
                raise InputError(
                    f"{key} is {value} and ensemble is deep; the members of a deep ensemble have no r and s, and each "
                    f"has its own BatchNorm: leave {key} at {default}, or set ensemble=batch"
                )


MOST_STEPS = 999_999_999
"""The name of a checkpoint has nine digits for the step."""
ADAMW = {"learning_rate": 1e-3, "weight_decay": 0.05}
"""Usual values for a training from new weights with a batch of 128; those of SGD would not do."""
_BATCH_ENSEMBLE_ONLY = ("batchnorm", "init_std", "member_rate", "decay_linear_rs")
_CHANGE_DEFAULTS = (
    ("pretrained", True, ("init_std",)),
    ("ensemble", "deep", _BATCH_ENSEMBLE_ONLY),
    ("optimiser", "adamw", tuple(ADAMW)),
)
"""A setting, its value that changes the defaults of others, and these others."""
_MIXING_OF = {"p": "bernoulli", "beta": "beta"}
"""The mixing that each setting of AugMix is for."""
WHOLE_NUMBERS = {
    **dict.fromkeys(("cardinality", "base_width", "depth", "width"), (1, 10_000)),
    "num_members": (1, 1_000),
    "epochs": (1, 1_000_000),
    "batch_size": (1, 1_000_000),
    "steps": (1, MOST_STEPS),
    "warmup_steps": (0, MOST_STEPS),
}
"""The least and the greatest value of each. A value far above all that was ever trained must be a typing error."""


def to_dict(experiment: Experiment) -> dict[str, Any]:
    """The experiment as JSON values: vectors become lists."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(experiment)))
    return values


def from_dict(values: Mapping[str, Any]) -> Experiment:
    """The experiment that `to_dict` gave, with every key and type checked."""
    if not isinstance(values, Mapping):
        raise InputError(f"the experiment is {shown(values)}; it must be an object with its settings")
    experiment: Experiment = build(Experiment, values)
    return experiment


def override(experiment: Experiment, assignments: Sequence[str]) -> Experiment:
    """`experiment` with each `key=value` applied; nested keys are written with dots (policy.augmix.p=1).

    With pretrained=true, init_std gets the default that it then has, unless it is named too. So do the settings of r
    and s with ensemble=deep, and the learning rate and the weight decay with optimiser=adamw.
    """
    values, named = to_dict(experiment), set()
    for assignment in assignments:
        key, separator, text = assignment.partition("=")
        if not separator or not key.strip():
            raise InputError(f"{shown(assignment)!r} is not key=value; write it as in epochs=20")
        _assign(values, key.strip(), text.strip())
        named.add(key.strip())
    for key, value, others in _CHANGE_DEFAULTS:
        if values[key] == value and getattr(experiment, key) != value:
            values = {name: values[name] for name in values if name in named or name not in others}
    check_fields(named, values["model"])
    changed = from_dict(values)
    _check_effect(named, changed)
    return changed


def _check_effect(named: set[str], experiment: Experiment) -> None:
    """Raise for a setting that was given, is not at its default, and would have no effect: nobody would notice."""
    for key in ("decay_rs", *_BATCH_ENSEMBLE_ONLY):
        if key in named and experiment.num_members is None and getattr(experiment, key) != getattr(Experiment, key):
            raise InputError(
                f"{key} is a setting of ensembles and has no effect on a single network; leave it out, or set "
                "num_members to a number"
            )
    augmix = experiment.policy.augmix or AugMix()
    for key, mixing in _MIXING_OF.items():
        is_set = f"policy.augmix.{key}" in named and getattr(augmix, key) != getattr(AugMix, key)
        if is_set and augmix.mixing != mixing:
            raise InputError(
                f"policy.augmix.{key} has no effect with policy.augmix.mixing={augmix.mixing}; set "
                f"policy.augmix.mixing={mixing}, or leave it out"
            )


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """The keys in which two experiments' values differ, as "key: old → new"."""
    flat_old, flat_new = dict(flatten(old)), dict(flatten(new))
    keys = dict.fromkeys([*flat_old, *flat_new])
    return [f"{k}: {flat_old.get(k)} → {flat_new.get(k)}" for k in keys if flat_old.get(k) != flat_new.get(k)]


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Every value in nested settings, with its key as `override` takes it."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
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
        kind = dataclass_in(get_type_hints(kind).get(name))
        if kind is None:
            raise unknown("key", key, all_keys(Experiment))
        if values[name] is None:
            # Setting one part of an augmentation that is off turns it on, with defaults for its other parts.
            values[name] = dataclasses.asdict(kind())
        values = values[name]
    hints = get_type_hints(kind)
    if last not in hints:
        raise unknown("key", key, all_keys(Experiment))
    values[last] = parse(key, text, hints[last])
