"""Every setting is listed and explained, with its default as one would write it."""

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import pytest

from counterpoint.config import Experiment, override
from counterpoint.errors import InputError
from counterpoint.experiments.settings import Setting, all_settings
from counterpoint.own_images import OwnImages
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth

BASE = Experiment("test", "digits")
OWN = Experiment("test", "images", images=OwnImages())
FULL = replace(OWN, policy=MemberPolicy(augmix=AugMix(), adversarial=Adversarial(), stochastic_depth=StochasticDepth()))
KNOWN = {setting.key: setting for setting in all_settings()}


def keys(value: Any, prefix: str = "") -> list[str]:
    """Every key of an experiment with all augmentations. The policy as a whole cannot be set."""
    found = []
    for field in fields(value):
        inner = getattr(value, field.name)
        found += [prefix + field.name] if field.name != "policy" else []
        found += keys(inner, f"{prefix}{field.name}.") if is_dataclass(inner) else []
    return found


def test_every_key_is_listed_once_and_in_order() -> None:
    listed = [setting.key.removesuffix(".KEY") for setting in all_settings()]
    assert listed == keys(FULL)


def test_keys_that_a_user_names_are_listed_as_such() -> None:
    assert KNOWN["model_options.KEY"].default == ""
    changed = override(BASE, ["model=vit", "model_options.width=64"])
    assert changed.model_options == {"width": 64}


@pytest.mark.parametrize("setting", KNOWN.values(), ids=KNOWN)
def test_every_setting_is_explained_in_a_line(setting: Setting) -> None:
    assert setting.line.endswith("."), "a docstring under the field says what it means"
    assert len(setting.line) <= 160
    assert setting.meaning.startswith(setting.line)
    assert setting.may_be


def test_every_experiment_has_its_own_name_and_images() -> None:
    assert [key for key, setting in KNOWN.items() if setting.default is None] == ["name", "dataset"]


@pytest.mark.parametrize("setting", [one for one in KNOWN.values() if one.default], ids=lambda one: one.key)
def test_a_default_can_be_set_as_it_is_written(setting: Setting) -> None:
    parts = [
        part for part in ("augmix", "adversarial", "stochastic_depth") if setting.key.startswith(f"policy.{part}.")
    ]
    on = {part: getattr(FULL.policy, part) for part in parts}
    base = OWN if setting.key.startswith("images.") else BASE
    if setting.key in ("depth", "width"):
        base = replace(base, model="resnet")
    assert override(base, [f"{setting.key}={setting.default}"]) == replace(base, policy=MemberPolicy(**on))


def test_what_is_said_of_some() -> None:
    meaning = "How many times training goes through all training images."
    assert KNOWN["epochs"] == Setting("epochs", "a whole number from 1 to 1,000,000", "250", meaning)
    assert KNOWN["policy.augmix"].may_be == "none, or set by its parts"
    assert KNOWN["policy.augmix"].group == "policy"
    assert KNOWN["policy.augmix.severity"].default == "1,2,3,4"
    assert KNOWN["final_learning_rate"].default == "1e-06"
    assert KNOWN["steps"].may_be == "a whole number from 1 to 999,999,999, or none"
    assert KNOWN["train_on"].group == ""


_NUMBER = r"(-?[\d.,]*\d)"


def ends(may_be: str) -> tuple[list[str], list[str]]:
    """Values at the ends of the range that the words name, and values just outside it."""
    words, step = may_be.replace(",000", "000").replace(",999", "999").replace("4,096", "4096"), "0.001"
    inside, outside = [], []
    if found := re.search(rf"from {_NUMBER} to {_NUMBER}", words):
        inside, outside = [found[1], found[2]], [str(float(found[2]) + 1)]
        outside += ["-1" if found[1] == "0" else "0"] if "each 0" not in words else ["0.05"]
    if found := re.search(rf"(?:of|least|each) {_NUMBER}(?: or more|(?=( and|, and) below))", words):
        inside, outside = [*inside, found[1]], [*outside, "-1"]
    if found := re.search(rf"above {_NUMBER}", words):
        inside, outside = [*inside, step], [*outside, found[1]]
    if found := re.search(rf"below {_NUMBER}", words):
        inside, outside = [*inside, "0.8"], [*outside, found[1]]
    if found := re.search(rf"at most {_NUMBER}", words):
        inside, outside = [*inside, found[1]], [*outside, str(float(found[1]) + 0.001)]
    whole = "whole number" in words
    return [str(int(float(v))) if whole else v for v in inside], [str(int(float(v))) if whole else v for v in outside]


def number_settings() -> list[Setting]:
    return [one for one in KNOWN.values() if "number" in one.may_be and "KEY" not in one.key]


@pytest.mark.parametrize("setting", number_settings(), ids=lambda one: one.key)
def test_the_range_that_is_shown_is_the_one_that_is_checked(setting: Setting) -> None:
    inside, outside = ends(setting.may_be)
    assert inside
    assert outside
    entries = 4 if "separated by commas" in setting.may_be else 2 if "two numbers" in setting.may_be else 1
    base = OWN if setting.key.startswith("images.") else BASE
    base = replace(base, model="resnet") if setting.key in ("depth", "width") else base
    beside = ["policy.augmix.mixing=beta"] if setting.key == "policy.augmix.beta" else []
    for value in inside:
        override(base, [f"{setting.key}={','.join([value] * entries)}", *beside])
    for value in outside:
        with pytest.raises(
            InputError, match=re.escape(setting.key.rpartition(".")[2].replace("drop_rate", "drop rate"))
        ):
            override(base, [f"{setting.key}={','.join([value] * entries)}", *beside])


def test_a_line_is_the_first_sentence() -> None:
    setting = Setting("key", "a number", "1", "From 0.5 to 1, see docs/paper.md, 7. `key` is more. And more.")
    assert setting.line == "From 0.5 to 1, see docs/paper.md, 7."
