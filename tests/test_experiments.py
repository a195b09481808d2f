"""The experiments are the rows of SPEC, each with the recipe that the paper prints."""

import hashlib
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from counterpoint.config import Experiment, override, to_dict
from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS, config_hash, find_experiment, is_row, select_experiments
from counterpoint.experiments.schedules import SCHEDULES, find_schedule
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth

RECIPES = """single batch-ensemble be+sd be+sd-not-diverse be+adv be+adv-not-diverse be+adv-1.0 am-beta
am-beta-not-diverse am-bern-0.875 am-bern-1.0 am-bern-0.875+adv single-am-beta single-am-bern-0.875 single-am-bern-1.0
single-am-bern-0.875/test am-bern-0.875/test am-bern-0.875+adv/test""".split()


def test_the_names_are_the_papers_36_rows_and_the_quickstart() -> None:
    rows = {f"{dataset}/{recipe}" for dataset in ("cifar10", "cifar100") for recipe in RECIPES}
    assert len(rows) == 36
    assert set(EXPERIMENTS) == rows | {"digits/quickstart", "digits/single"}
    assert all(name == experiment.name for name, experiment in EXPERIMENTS.items())


@pytest.mark.parametrize("dataset", ["cifar10", "cifar100"])
@pytest.mark.parametrize("recipe", RECIPES)
def test_what_all_rows_share(dataset: str, recipe: str) -> None:
    e = find_experiment(f"{dataset}/{recipe}")
    single = recipe.startswith("single")
    assert (e.dataset, e.train_on) == (dataset, "all" if recipe.endswith("/test") else "split")
    assert (e.model, e.cardinality, e.base_width) == ("resnext29", 4, 32)
    assert (e.num_members, e.epochs) == ((None, 200) if single else (4, 250))
    assert (e.batch_size, e.learning_rate, e.momentum, e.weight_decay, e.decay_rs) == (128, 0.1, 0.9, 5e-4, True)
    assert (e.batchnorm, e.init_std, e.final_learning_rate) == ("shared", 0.5, 1e-6)
    assert (e.policy.flip, e.policy.crop_padding, e.policy.crop_per_view) == (True, 4, False)


@pytest.mark.parametrize(
    ("recipe", "policy"),
    [
        ("single", MemberPolicy()),
        ("batch-ensemble", MemberPolicy()),
        ("be+sd", MemberPolicy(stochastic_depth=StochasticDepth((0.0, 0.05, 0.1, 0.15), "diverse"))),
        ("be+sd-not-diverse", MemberPolicy(stochastic_depth=StochasticDepth((0.075,), "constant"))),
        ("be+adv", MemberPolicy(adversarial=Adversarial((0.0, 0.05, 0.1, 0.15), "diverse", 0.875))),
        ("be+adv-not-diverse", MemberPolicy(adversarial=Adversarial((0.0, 0.05, 0.1, 0.15), "shuffled", 0.875))),
        ("be+adv-1.0", MemberPolicy(adversarial=Adversarial((0.0, 0.05, 0.1, 0.15), "diverse", 1.0))),
        ("am-beta", MemberPolicy(augmix=AugMix((1.0, 2.0, 3.0, 4.0), "diverse", "beta", beta=1.0))),
        ("am-beta-not-diverse", MemberPolicy(augmix=AugMix((3.0,), "constant", "beta", beta=1.0))),
        ("am-bern-0.875", MemberPolicy(augmix=AugMix((1.0, 2.0, 3.0, 4.0), "diverse", "bernoulli", 0.875))),
        ("am-bern-1.0", MemberPolicy(augmix=AugMix((1.0, 2.0, 3.0, 4.0), "diverse", "bernoulli", 1.0))),
        (
            "am-bern-0.875+adv",
            MemberPolicy(
                augmix=AugMix((1.0, 2.0, 3.0, 4.0), "diverse", "bernoulli", 0.875),
                adversarial=Adversarial((0.0, 0.05, 0.1, 0.15), "diverse", 0.875, "network", False),
            ),
        ),
        ("single-am-beta", MemberPolicy(augmix=AugMix((3.0,), "constant", "beta", beta=1.0))),
        ("single-am-bern-0.875", MemberPolicy(augmix=AugMix((3.0,), "constant", "bernoulli", 0.875))),
        ("single-am-bern-1.0", MemberPolicy(augmix=AugMix((3.0,), "constant", "bernoulli", 1.0))),
    ],
)
def test_each_recipe(recipe: str, policy: MemberPolicy) -> None:
    for dataset in ("cifar10", "cifar100"):
        assert find_experiment(f"{dataset}/{recipe}").policy == policy
        if f"{dataset}/{recipe}/test" in EXPERIMENTS:
            assert find_experiment(f"{dataset}/{recipe}/test").policy == policy


def test_words_select() -> None:
    assert len(select_experiments([])) == 38
    assert len(select_experiments(["cifar10"])) == 18
    assert [e.name for e in select_experiments(["cifar100", "SD"])] == ["cifar100/be+sd", "cifar100/be+sd-not-diverse"]
    singles = [f"cifar10/{recipe}" for recipe in RECIPES if recipe.startswith("single")]
    assert sorted(e.name for e in select_experiments(["single", "cifar10"])) == sorted(singles)
    assert [e.name for e in select_experiments(["cifar10/single"])] == ["cifar10/single"]
    assert [e.name for e in select_experiments(["cifar10", "am-bern-0.875"])] == [
        "cifar10/am-bern-0.875",
        "cifar10/am-bern-0.875/test",
    ]
    assert len(select_experiments(["cifar10", "am"])) == 11, "no whole part, so anywhere"
    assert [e.name for e in select_experiments(["cifar10/am-bern-0.875"])] == ["cifar10/am-bern-0.875"]
    with pytest.raises(InputError, match="no experiment has 'resnet' and 'sd' in its name"):
        select_experiments(["resnet", "sd"])


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown experiment 'cifar10/batchensemble'; did you mean 'cifar10/batch-ens"):
        find_experiment("cifar10/batchensemble")


# A result counts for its row by this hash: a change here makes every committed result of the row "not run".
HASHES = """
cifar10/single 4e0dc4310ef48b35baa72669c6df9d805032100391fc85ba24ab398a9ed7e7a0
cifar10/batch-ensemble 3a62b4422a1cb515f957ff2095afdae59358a395ae1c59b6d94dcb1564484364
cifar10/be+sd e5ce0039e7678c3d6a2a84cc952174215c31c6d5ff09dcfe0b0f82ac6f2de8eb
cifar10/be+sd-not-diverse 4cfa6745c4efb302b331621384d6c8d10b72121a810016ff209bb2e4c2208690
cifar10/be+adv 6f9adcecc41336936ae12d944d69b5c5641fa1d68d6515313fa882a5d9eff60b
cifar10/be+adv-not-diverse 26fad11eaa432ade8827e14d379b4d34ad2183be4f400eb312abcd5f99a1ea28
cifar10/be+adv-1.0 fe959f210c98984734e99a07614bf7ae521e7839da30b4e962cbd0405294496d
cifar10/single-am-beta 242edd978bbd9fbdf3828486679276ee0395bc0c3c2ab4b86471aa9875d8d787
cifar10/single-am-bern-0.875 ee7fdeb84d3ff83035f3e777b809c0a6cc072579a062ee33139dcd73f02ae4d6
cifar10/single-am-bern-1.0 dbef638141bf0f3e8b432715d67ad9e5d4551b1327e2f16db8db1d69de7b8d68
cifar10/am-beta 856749ac7a1f7e599ece40e991750a70ec88c6d350bba0b3eb1680679292a299
cifar10/am-beta-not-diverse 92235bf416e81fdf13ec8a6545257683150e6130a82b95abaca264d58b152e2f
cifar10/am-bern-0.875 aa934fddac2b780d1b6510461f18c9d1536f80c09a7cb275150dd46c6b30d82e
cifar10/am-bern-1.0 014f5c4bdb47647fca9c042a1c040ff4bdef7c643fa1a0510732e26d108bc486
cifar10/am-bern-0.875+adv 9cce3040bfc6443d9534530a7bd9976d2dd461a269453735fea6044c2abf8f5d
cifar10/single-am-bern-0.875/test 9d936fb729b694e13a3f82d715589ba544d97538af68e033a4e2094d4712cbf8
cifar10/am-bern-0.875/test ca6e85bd25c8074fab4840de3590732187a5d73fe67b8df5324f7bc27a82abe0
cifar10/am-bern-0.875+adv/test 33d5d23722335478f6557a2f623f99054cd73290c146820fe3f12040cf2adc1b
cifar100/single 367a11ce8cb07a69199692181b4033cc9c25b07c9315da2586b8f5527e3e0090
cifar100/batch-ensemble f754b75a81092273db55b796f934e524638e2746eb0fcd6c311b707541c748ee
cifar100/be+sd 4197ed7a83ebbfc29e87dc3e1baa69719664a4a25b7089f998a6c5b700fc4801
cifar100/be+sd-not-diverse 1b6ea93eb1ef3951b69d73ffb1cdbe11b5803b693629d50272364926015e780b
cifar100/be+adv d36f411b43785d6afe734ec2700453e1810049d4a9c2e7a06106b548d9bc5886
cifar100/be+adv-not-diverse 6468cc7bc5e8f02c605828121b923f5030b47e40b79e6ed0857813024d5f228f
cifar100/be+adv-1.0 bba1fd6ac1eaf39313d3c162dd5ca1b110a2b51fc2211848045abfe656ce3d27
cifar100/single-am-beta 6edfdfcd78c7326849d2b6e6f574973dd5b32c37283af0d08056f09faab21699
cifar100/single-am-bern-0.875 effb1ba63d6541f6a1cc565ace8cec03e5c6fce1bf841658574c9ee717988e10
cifar100/single-am-bern-1.0 1e6f12674531ba74482f3a925782fdcdb5cc90252d1cd6f8f422ddd97911257a
cifar100/am-beta 721e34b35e42e8108139ec80de143523c7f02b6445c4e72afe11e5413e647e67
cifar100/am-beta-not-diverse 5dcda1b5b44d284d396138f98814e63af6559ed0c2b9c2b8e66122ac1ffacd50
cifar100/am-bern-0.875 79c5d49f14646e3f2ebcf45ce009a68855c34151d273b7b4381e8b5036b700c3
cifar100/am-bern-1.0 e6d0999fb30a1f5c754a2e1e49b0576669d6f97c1e8437667b56e88c8f9a572b
cifar100/am-bern-0.875+adv c1b71de164d392d2bd04ef506fbe0b6446d0f79289bdd6a63e7c4ebe22a63caf
cifar100/single-am-bern-0.875/test 6c79ac784f914df41b3072bfbf34a31fd3368c7556977f163662eeef93a5c599
cifar100/am-bern-0.875/test b5a1f6adbc77adf2f4ca3606ca499bd06f5b9849479bdc00104e80fda7baa340
cifar100/am-bern-0.875+adv/test a5f226aa4011661feebf2765fb76ce696ffaac59752b75581dcedaf764c01a97
"""


def test_the_hashes_of_the_36_rows_are_pinned() -> None:
    pinned = dict(line.split() for line in HASHES.split("\n") if line)
    assert len(pinned) == len(set(pinned.values())) == 36
    assert {name: config_hash(find_experiment(name)) for name in pinned} == pinned


@pytest.mark.parametrize(
    ("experiment", "canonical"),
    [
        (Experiment("any", "cifar10"), '{"dataset":"cifar10"}'),
        (find_experiment("cifar10/single"), '{"dataset":"cifar10","epochs":200,"num_members":null}'),
        (find_experiment("cifar10/am-bern-0.875"), '{"dataset":"cifar10","policy":{"augmix":{}}}'),
        (
            find_experiment("cifar100/be+sd-not-diverse"),
            '{"dataset":"cifar100","policy":{"stochastic_depth":{"assignment":"constant","drop_rate":[0.075]}}}',
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Experiment) else "",
)
def test_a_hash_is_of_what_differs_from_the_defaults(experiment: Experiment, canonical: str) -> None:
    assert config_hash(experiment) == hashlib.sha256(canonical.encode()).hexdigest()


CHANGES = """train_on=all model=resnet cardinality=32 base_width=4 depth=14 width=8 num_members=none
batchnorm=per-member init_std=0.1 epochs=50 steps=64 batch_size=64 learning_rate=0.05 final_learning_rate=0
warmup_steps=352 momentum=0.8 weight_decay=0 decay_rs=false decay_batchnorm=false policy.flip=false
policy.crop_padding=2 policy.crop_per_view=true
policy.augmix=none policy.augmix.severity=1,2,3,3 policy.augmix.assignment=shuffled policy.augmix.mixing=beta
policy.augmix.p=1 policy.augmix.beta=2 policy.augmix.jsd=12 policy.adversarial=none
policy.adversarial.severity=0,0,0,0.1 policy.adversarial.assignment=shuffled policy.adversarial.p=1
policy.adversarial.space=pixel policy.adversarial.clip=true policy.stochastic_depth=none
policy.stochastic_depth.drop_rate=0,0,0,0 policy.stochastic_depth.assignment=shuffled""".split()
NESTED = {"policy": MemberPolicy, "augmix": AugMix, "adversarial": Adversarial, "stochastic_depth": StochasticDepth}


def row_with(setting: str) -> Experiment:
    """One that has the augmentation of a setting already, so that the setting alone changes."""
    for part, name in (("num_members", "batch-ensemble"), ("adversarial", "be+adv"), ("stochastic_depth", "be+sd")):
        if part in setting:
            return find_experiment(f"cifar10/{name}")
    return find_experiment("cifar10/am-bern-0.875")


@pytest.mark.parametrize("assignment", CHANGES)
def test_whatever_changes_the_result_changes_the_hash(assignment: str) -> None:
    row = row_with(assignment.split("=")[0])
    assert config_hash(override(row, [assignment])) != config_hash(row)


def settings(kind: type[Any], prefix: str = "") -> Iterator[str]:
    for own in fields(kind):
        yield prefix + own.name
        if own.name in NESTED:
            yield from settings(NESTED[own.name], f"{prefix}{own.name}.")


def test_no_setting_is_left_out_of_the_changes() -> None:
    changed = {assignment.split("=")[0] for assignment in CHANGES}
    assert set(settings(Experiment)) - changed == {"name", "dataset", "policy"}


def test_the_name_and_how_a_number_is_written_change_no_hash() -> None:
    row = find_experiment("cifar10/am-bern-1.0")
    assert config_hash(replace(row, name="mine")) == config_hash(row)
    whole = replace(row, policy=MemberPolicy(augmix=AugMix((1, 2, 3, 4), p=1)))
    assert config_hash(whole) == config_hash(row)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_its_own_row(name: str) -> None:
    assert is_row(to_dict(EXPERIMENTS[name]))


def without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {k: v for k, v in values.items() if k != key}


def test_a_row_is_neither_changed_nor_shortened_nor_unknown() -> None:
    row = find_experiment("cifar10/batch-ensemble")
    old = without(to_dict(row), "steps")  # as written before there was such a field
    assert is_row(old)
    assert not is_row(to_dict(replace(row, epochs=20)))
    assert not is_row(to_dict(replace(row, name="cifar10/be+sd")))
    assert not is_row(to_dict(replace(row, name="mine")))
    assert not is_row(old | {"colour": "red"})
    assert not is_row({"dataset": "cifar10", "epochs": 250})


@pytest.mark.parametrize(("name", "epochs"), [("cifar10/single", 200), ("cifar100/be+adv", 250)])
def test_schedules(name: str, epochs: int) -> None:
    row = find_experiment(name)
    assert find_schedule("paper").shorten(row) == row
    assert find_schedule("short").shorten(row) == replace(row, epochs=epochs // 5)
    smoke = find_schedule("smoke")
    assert (smoke.shorten(row).steps, smoke.images, smoke.eager) == (64, 200, True)
    assert len({config_hash(s.shorten(row)) for s in SCHEDULES.values()}) == 3
    with pytest.raises(InputError, match="unknown schedule 'shrt'; did you mean 'short'"):
        find_schedule("shrt")
