"""The experiments are the rows of docs/paper.md, each with the recipe that the paper prints."""

import math

import pytest

from counterpoint.errors import InputError
from counterpoint.experiments import EXPERIMENTS, find_experiment, select_experiments
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
    assert (e.batch_size, e.learning_rate, e.momentum, e.weight_decay, e.decay_rs) == (128, 0.1, 0.9, 5e-4, single)
    assert e.warmup_steps == math.ceil((50_000 if e.train_on == "all" else 45_000) / e.batch_size), "one epoch"
    assert (e.decay_batchnorm, e.member_rate) == (True, 1.0)
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
    with pytest.raises(InputError, match="unknown word in an experiment's name 'resnet'"):
        select_experiments(["resnet", "sd"])


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(InputError, match="unknown experiment 'cifar10/batchensemble'; did you mean 'cifar10/batch-ens"):
        find_experiment("cifar10/batchensemble")
