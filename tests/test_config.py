import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from counterpoint.config import Experiment, differences, from_dict, override, to_dict
from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS
from counterpoint.own_images import OwnImages
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth

BASE = Experiment("test", "digits", num_members=4)
FULL = replace(
    BASE, policy=MemberPolicy(augmix=AugMix(), adversarial=Adversarial(clip=True), stochastic_depth=StochasticDepth())
)


@pytest.mark.parametrize("experiment", [BASE, FULL, *EXPERIMENTS.values()], ids=lambda e: e.name)
def test_json_brings_an_experiment_back(experiment: Experiment) -> None:
    assert from_dict(json.loads(json.dumps(to_dict(experiment)))) == experiment


@pytest.mark.parametrize(
    ("assignments", "expected"),
    [
        (["epochs=7"], replace(BASE, epochs=7)),
        (["learning_rate=1e-2", "decay_rs=false"], replace(BASE, learning_rate=0.01, decay_rs=False)),
        (["num_members=none"], replace(BASE, num_members=None)),
        (["steps=64"], replace(BASE, steps=64)),
        (["batchnorm=per-member"], replace(BASE, batchnorm="per-member")),
        (["ensemble=deep", "decay_rs=false"], replace(BASE, ensemble="deep", decay_rs=False)),
        (["policy.flip=False"], replace(BASE, policy=MemberPolicy(flip=False))),
        (["policy.augmix.p=1"], replace(BASE, policy=MemberPolicy(augmix=AugMix(p=1.0)))),
        (
            ["policy.stochastic_depth.drop_rate=0,0.1,0.2,0.3"],
            replace(BASE, policy=MemberPolicy(stochastic_depth=StochasticDepth((0.0, 0.1, 0.2, 0.3)))),
        ),
        (["policy.augmix.p=1", "policy.augmix=none"], BASE),
        (["init_std=none"], replace(BASE, init_std=None)),
        (
            ["model=vit", "model_options.width=64", "model_options.a=true", "model_options.width=32"],
            replace(BASE, model="vit", model_options={"width": 32, "a": True}),
        ),
        (["optimiser=adamw"], replace(BASE, optimiser="adamw", learning_rate=0.001, weight_decay=0.05)),
        (
            ["weight_decay=0", "optimiser=adamw", "learning_rate=0.01"],
            replace(BASE, optimiser="adamw", learning_rate=0.01, weight_decay=0.0),
        ),
        (["model=timm/a", "pretrained=true"], replace(BASE, model="timm/a", pretrained=True, init_std=None)),
        (
            ["init_std=0.5", "model=timm/a", "pretrained=true"],
            replace(BASE, model="timm/a", pretrained=True, init_std=0.5),
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_overrides(assignments: list[str], expected: Experiment) -> None:
    assert override(BASE, assignments) == expected


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("=20", "'=20' is not key=value; write it as in epochs=20"),
        ("epochs", "'epochs' is not key=value; write it as in epochs=20"),
        ("epoch=3", "unknown key 'epoch'; did you mean 'epochs'"),
        ("policy.augmix.q=1", r"unknown key 'policy.augmix.q'; did you mean .*policy.augmix.p"),
        ("model.size=3", "unknown key 'model.size'"),
        ("model=resnet50", r"unknown model 'resnet50'; did you mean 'resnet' .*known: resnext29, .*MODULE:FUNCTION"),
        ("model_options=3", r"model_options=3: it must be set key by key \(--set model_options.KEY=VALUE\)"),
        ("model_options.=3", "unknown key 'model_options.'; did you mean 'model_options.KEY'"),
        ("model_options.a.b=3", "unknown key 'model_options.a.b'; did you mean 'model_options.KEY'"),
        (
            "model_options.depth=3",
            r"resnext29 takes no model_options \(depth\); set cardinality and base_width instead",
        ),
        ("pretrained=yes", "pretrained=yes: it must be true or false"),
        ("pretrained=true", "pretrained is true, but resnext29 has no published weights; choose a model of timm/"),
        ("init_std=-1", "init_std is -1.0; it must be a finite number of 0 or more"),
        ("init_std=big", "init_std=big: it must be a number or none"),
        ("epochs=many", "epochs=many: it must be a whole number"),
        ("epochs=1.5", "epochs=1.5: it must be a whole number"),
        ("epochs=0", "epochs is 0; it must be from 1 to 1,000,000"),
        ("learning_rate=fast", "learning_rate=fast: it must be a number"),
        ("learning_rate=nan", "learning_rate is nan; it must be a finite number of 0 or more"),
        ("learning_rate=inf", "learning_rate is inf; it must be a finite number of 0 or more"),
        ("final_learning_rate=inf", "final_learning_rate is inf; it must be a finite"),
        ("weight_decay=1e400", "weight_decay is inf; it must be a finite"),
        ("member_rate=inf", "member_rate is inf; it must be a finite"),
        ("init_std=inf", "init_std is inf; it must be a finite"),
        ("momentum=inf", "momentum is inf; it must be at least 0 and below 1"),
        ("policy.augmix.severity=1,2,3,inf", "augmix severity inf is not allowed; each entry must be a finite number"),
        ("policy.augmix.beta=inf", "augmix beta is inf; it must be a finite number of more than 0"),
        ("policy.augmix.jsd=inf", "augmix jsd is inf; it must be 0 .no consistency loss. or more, and finite"),
        ("policy.augmix.p=inf", "augmix p is inf; a probability must be between 0 and 1"),
        ("policy.adversarial.severity=0,0,0,inf", "adversarial severity inf is not allowed; each entry must"),
        ("policy.stochastic_depth.drop_rate=0,0,0,inf", "drop rate inf is not allowed; each entry must"),
        ("policy.crop_scale=0.5,inf", "crop_scale is"),
        ("policy.crop_padding=1000000", "crop_padding is 1000000; it must be a whole number from 0 to 4,096"),
        ("batch_size=100000000", "batch_size is 100000000; it must be from 1 to 1,000,000"),
        ("num_members=100000000", "num_members is 100000000; it must be from 1 to 1,000"),
        ("base_width=10001", "base_width is 10001; it must be from 1 to 10,000"),
        ("epochs=" + "9" * 400, "epochs is 99*…; it must be from 1 to 1,000,000"),
        ("epochs=" + "9" * 5000, "epochs=99*…: it must be a whole number"),
        ("model=wide-resnet-99999-1", "unknown model 'wide-resnet-99999-1'"),
        ("decay_rs=maybe", "decay_rs=maybe: it must be true or false"),
        ("batchnorm=none", "batchnorm=none: it must be one of shared, per-member"),
        ("ensemble=snapshot", "ensemble=snapshot: it must be one of batch, deep"),
        ("num_members=two", "num_members=two: it must be a whole number or none"),
        ("num_members=0", "num_members is 0"),
        ("steps=0", "steps is 0; it must be from 1 to 999,999,999"),
        ("warmup_steps=-1", "warmup_steps is -1; it must be from 0 to 999,999,999"),
        ("steps=all", "steps=all: it must be a whole number or none"),
        ("momentum=1", "momentum is 1.0; it must be at least 0 and below 1"),
        ("policy.augmix=strong", r"strong: it must be set by its parts \(policy.augmix.severity, .*\) or none"),
        (
            "policy.augmix.severity=1,2",
            r"augmix severity has 2 entries \[1.0, 2.0\]; 'diverse' needs one for each of 4 members: set "
            "policy.augmix.severity to 4 numbers, or to one number and policy.augmix.assignment to constant",
        ),
        (
            "policy=1",
            r"policy=1: it must be set by its parts \(policy.flip, .*_depth.rescale; in Python as MemberPolicy\(…\)\)",
        ),
        (
            "policy.augmix.severity=1,2,3,-4",
            "augmix severity -4.0 is not allowed; each entry must be a finite number of 0",
        ),
        ("policy.augmix.severity=1,2,3,0.05", "augmix severity 0.05 is out of range"),
        ("policy.augmix.severity=a,b", "policy.augmix.severity=a,b: it must be numbers separated by commas"),
        ("policy.augmix.assignment=constant", "augmix severity has 4 entries .*'constant' needs one entry"),
        ("policy.augmix.p=1.5", "augmix p is 1.5; a probability must be between 0 and 1"),
        ("policy.augmix.beta=0", "augmix beta is 0.0; it must be a finite number of more than 0"),
        ("policy.augmix.jsd=-1", "augmix jsd is -1.0; it must be 0 .no consistency loss. or more"),
        ("policy.adversarial.p=0", "adversarial p is 0"),
        ("policy.adversarial.severity=0,1", r"adversarial severity has 2 entries"),
        ("policy.stochastic_depth.drop_rate=0,0,0,1", "drop rate 1.0 is too large; it must be at least 0 and below 1"),
        ("policy.crop_padding=-1", "crop_padding is -1"),
        ("policy.crop_scale=0.5", r"crop_scale is \[0\.5\]; it must be two shares of the area"),
        ("policy.crop_scale=0,1", r"crop_scale is \[0\.0, 1\.0\]"),
        ("policy.crop_scale=0.5,1.5", r"crop_scale is \[0\.5, 1\.5\]"),
        ("policy.crop_scale=0.8,0.2", r"crop_scale is \[0\.8, 0\.2\]"),
        ("policy.crop_scale=a", "policy.crop_scale=a: it must be numbers separated by commas .such as 0.5,1. or none"),
    ],
)
def test_a_bad_override_names_the_key_and_what_is_allowed(assignment: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        override(BASE, [assignment])


def test_a_single_network_needs_one_severity() -> None:
    single = replace(BASE, num_members=None)
    with pytest.raises(InputError, match=r"one for a single network: set policy\.augmix\.severity to one number"):
        override(single, ["policy.augmix.p=1"])
    assert override(single, ["policy.augmix.p=1", "policy.augmix.severity=3"]).policy.augmix == AugMix((3.0,), p=1.0)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        (
            "num_members=none",
            "ensemble is deep, but num_members is none, which means a single network; set num_members",
        ),
        ("batchnorm=per-member", "batchnorm is per-member and ensemble is deep; .* each has its own BatchNorm"),
        ("init_std=0.1", r"init_std is 0\.1 and ensemble is deep; .* have no r and s, .*: leave init_std at 0\.5"),
        ("member_rate=0.5", r"member_rate is 0\.5 and ensemble is deep; .*: leave member_rate at 1\.0"),
    ],
)
def test_what_has_no_meaning_for_a_deep_ensemble_is_refused(assignment: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        override(BASE, ["ensemble=deep", assignment])


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (
            ["num_members=none", "batchnorm=per-member"],
            "batchnorm is a setting of ensembles and has no effect on a single",
        ),
        (["num_members=none", "init_std=0.1"], "init_std is a setting of ensembles"),
        (["num_members=none", "init_std=none"], "init_std is a setting of ensembles"),
        (["num_members=none", "member_rate=0.5"], "member_rate is a setting of ensembles"),
        (["num_members=none", "decay_rs=false"], "decay_rs is a setting of ensembles"),
        (["policy.augmix.beta=0.5"], r"beta has no effect with policy.augmix.mixing=bernoulli; set .*mixing=beta, or"),
        (["policy.augmix.mixing=beta", "policy.augmix.p=1"], r"augmix.p has no effect with policy.augmix.mixing=beta"),
    ],
)
def test_a_setting_that_would_have_no_effect_is_refused(assignments: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        override(BASE, assignments)


@pytest.mark.parametrize("group", ["policy", "policy.augmix", "model_options"])
def test_a_group_of_settings_takes_no_value_even_where_a_part_of_it_is_set_too(group: str) -> None:
    part = {"policy": "flip", "policy.augmix": "p", "model_options": "width"}[group]
    with pytest.raises(InputError, match=f"{group}=true: it must be .*set"):
        override(BASE, [f"{group}=true", f"{group}.{part}=1"])


def test_a_setting_that_an_experiment_merely_has_may_have_no_effect() -> None:
    far_apart = replace(BASE, init_std=0.1, policy=MemberPolicy(augmix=AugMix(p=1.0)))
    single = override(far_apart, ["num_members=none", "policy.augmix=none"])
    assert (single.num_members, single.init_std) == (None, 0.1)
    assert override(far_apart, ["policy.augmix.mixing=beta"]).policy.augmix == AugMix(p=1.0, mixing="beta")
    assert override(BASE, ["policy.augmix.beta=1"]).policy.augmix == AugMix(), "at its default it says nothing else"
    assert override(BASE, ["policy.augmix.beta=3", "policy.augmix=none"]) == BASE


def test_a_batch_ensemble_becomes_a_deep_one_by_one_word() -> None:
    batch = replace(BASE, init_std=0.1, member_rate=0.5, batchnorm="per-member")
    assert override(batch, ["ensemble=deep"]) == override(BASE, ["ensemble=deep"])
    with pytest.raises(InputError, match=r"init_std is 0\.2 and ensemble is deep"):
        override(batch, ["ensemble=deep", "init_std=0.2"])


@pytest.mark.parametrize(
    ("changes", "has"), [({}, True), ({"ensemble": "deep"}, False), ({"num_members": None}, False)]
)
def test_only_a_batch_ensemble_has_factors(changes: dict[str, Any], has: bool) -> None:
    assert replace(BASE, **changes).has_factors is has


def test_what_is_missing_has_its_default() -> None:
    values = to_dict(FULL)
    del values["steps"], values["policy"]["adversarial"]["space"]
    assert from_dict(values) == FULL


def test_foreign_json_is_refused() -> None:
    with pytest.raises(InputError, match="dataset is missing"):
        from_dict({"name": "x"})
    with pytest.raises(InputError, match="unknown key 'colour'"):
        from_dict(to_dict(BASE) | {"colour": 3})
    with pytest.raises(InputError, match="epochs=True: it must be a whole number"):
        from_dict(to_dict(BASE) | {"epochs": True})
    with pytest.raises(InputError, match="augmix severity inf is not allowed"):
        from_dict(to_dict(BASE) | {"policy": {"augmix": {"severity": [1, 2, 3, 10**400]}}})


def test_differences_name_the_keys() -> None:
    assert differences(to_dict(BASE), to_dict(replace(BASE, epochs=3))) == ["epochs: 250 → 3"]
    changed = differences(to_dict(BASE), to_dict(FULL))
    assert "policy.augmix.p: None → 0.875" in changed
    assert differences(json.loads(json.dumps(to_dict(FULL))), to_dict(FULL)) == []


@pytest.mark.parametrize("key", ["depth", "width", "cardinality", "base_width"])
def test_a_setting_without_effect_on_the_model_is_refused(key: str) -> None:
    with pytest.raises(InputError, match=f"{key} is a setting of resne.*; change vit with model_options.KEY=VALUE"):
        override(BASE, ["model=vit", f"{key}=16"])
    own, other = ("resnet", "resnext29") if key in ("depth", "width") else ("resnext29", "resnet")
    assert getattr(override(BASE, [f"model={own}", f"{key}=16"]), key) == 16
    with pytest.raises(InputError, match=f"{key} is a setting of {own} .*; change {other} with .* and "):
        override(BASE, [f"model={other}", f"{key}=16"])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"epochs": "many"}, "epochs=many: it must be a whole number"),
        ({"learning_rate": None}, "learning_rate=None: it must be a number"),
        (
            {"policy": {"crop_padding": 10**5000}},
            "crop_padding is a value of the type int, too long to be shown; it must",
        ),
        ({"batch_size": 10**5000}, "batch_size is a value of the type int, too long to be shown; it must be from 1 to"),
        ({"learning_rate": 10**400}, "learning_rate is inf; it must be a finite number of 0 or more"),
        ({"weight_decay": -(10**400)}, "weight_decay is -inf; it must be a finite number of 0 or more"),
        ({"policy": 3}, "policy=3: it must be set by its parts"),
        ({"name": 3}, "name=3: it must be a text"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_a_caller_of_the_library_is_told_too(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Experiment(**{"name": "test", "dataset": "digits"} | values)


def test_numpys_numbers_become_pythons() -> None:
    """A sweep in Python often takes its values from an array."""
    of_images: dict[str, Any] = {"size": np.int64(64), "val": np.float32(0.25)}
    settings: dict[str, Any] = {"epochs": np.int8(3), "learning_rate": np.float32(0.5), "decay_rs": np.bool_(False)}
    made = Experiment("test", "images", images=OwnImages(**of_images), **settings)
    plain = Experiment("test", "images", images=OwnImages(64, val=0.25), epochs=3, learning_rate=0.5, decay_rs=False)
    assert (made, json.dumps(to_dict(made))) == (plain, json.dumps(to_dict(plain)))


def test_a_model_keeps_its_options_in_json_and_is_no_key_of_a_dict() -> None:
    options = {"a": 1, "b": 1.5, "c": "x", "d": None, "e": [1, 2], "f": False}
    experiment = replace(BASE, model="m:f", model_options=options)
    assert from_dict(json.loads(json.dumps(to_dict(experiment)))) == experiment
    assert len({experiment, BASE}) == 2, "an experiment can still be hashed"
    with pytest.raises(InputError, match=r"model_options\.a is \(1, 2\); it must be a text, a number, true, false"):
        replace(BASE, model="m:f", model_options={"a": (1, 2)})


@pytest.mark.parametrize("key", ["dataset", "train_on", "model", "ensemble", "batchnorm", "optimiser"])
def test_a_choice_that_is_none_is_refused_in_python_too(key: str) -> None:
    changed: dict[str, Any] = {key: "convnet"}
    message = "unknown model 'convnet' .*known: " if key == "model" else f"{key}=convnet: it must be one of "
    with pytest.raises(InputError, match=message):
        replace(BASE, **changed)


def test_settings_are_of_their_own_types() -> None:
    """1 and −0 would be written, and so hashed, in another way than 1.0 and 0.0, which they are equal to."""
    given: dict[str, Any] = {"learning_rate": 1, "weight_decay": -0.0, "policy": {"augmix": {"severity": [1, 2, 3, 4]}}}
    made = Experiment("test", "digits", **given)
    augmix = AugMix((1.0, 2.0, 3.0, 4.0))
    plain = Experiment("test", "digits", learning_rate=1.0, weight_decay=0.0, policy=MemberPolicy(augmix=augmix))
    assert json.dumps(to_dict(made)) == json.dumps(to_dict(plain))
    assert made == plain


@pytest.mark.parametrize(
    ("changes", "learning_rate", "weight_decay", "init_std"),
    [
        ({}, 0.1, 5e-4, 0.5),
        ({"optimiser": "adamw"}, 0.001, 0.05, 0.5),
        ({"optimiser": "adamw", "learning_rate": 0.1, "weight_decay": 5e-4}, 0.1, 5e-4, 0.5),
        ({"optimiser": "adamw", "learning_rate": 0.01}, 0.01, 0.05, 0.5),
        ({"model": "timm/a", "pretrained": True}, 0.1, 5e-4, None),
        ({"model": "timm/a", "pretrained": True, "init_std": 0.5}, 0.1, 5e-4, 0.5),
        ({"model": "timm/a", "pretrained": True, "ensemble": "deep"}, 0.1, 5e-4, 0.5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_defaults_in_python_are_those_of_the_command_line(
    changes: dict[str, Any], learning_rate: float, weight_decay: float, init_std: float | None
) -> None:
    experiment = Experiment("test", "digits", **changes)
    found = (experiment.learning_rate, experiment.weight_decay, experiment.init_std)
    assert found == (learning_rate, weight_decay, init_std)
    assert {type(value) for value in found} <= {float, type(None)}, "nobody takes a settled number for a default again"
    texts = {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in changes.items()}
    assert override(BASE, [f"{key}={text}" for key, text in texts.items()]) == experiment
    assert from_dict(to_dict(experiment)) == experiment
