"""What a hash covers, and which configurations are a row's."""

import hashlib
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest

from counterpoint.config import Experiment, override, to_dict
from counterpoint.experiments import EXPERIMENTS, config_hash, find_experiment, is_row
from counterpoint.own_images import OwnImages
from counterpoint.policy import Adversarial, AugMix, MemberPolicy, StochasticDepth

# A result counts for its row by this hash: a change here makes every committed result of the row "not run".
HASHES = """
cifar10/single 2f5d90424e92515958a5296a6d8610e5748266ebfd529fe1ecd777c90c4f028a
cifar10/batch-ensemble b163ae29b019aa8ec0a72186378524c66043239a85521e5d35105b342ecb2c2e
cifar10/be+sd 0ff243484b058af8a7aa564107478d36753c2a6cfd31e555f6d6c28506e6893f
cifar10/be+sd-not-diverse 8c18393a8142a40e745ba636ada51ab4f187d7323bb276906adbebd1bd3dd0c1
cifar10/be+adv f1001a3df92d9103c8f9c5adf360bac46bb2fe852798346440d9a63396f859da
cifar10/be+adv-not-diverse 3f6d53b43e66e6d4a7c412f641687a4e37270a69da15af3fb2ccc183ee43cfb2
cifar10/be+adv-1.0 f732f88f9928831a3c2f5e1a7668405f4fada02a947a8f8bc7bec9503c16b73e
cifar10/single-am-beta 7f1962d868a18be18f9670a75c81557e586293ecc32eccc863a9f8eb379fa70b
cifar10/single-am-bern-0.875 0d4fe612cc80ea7f840dafc180883718eb5753125812da0119de2167bf7c1f45
cifar10/single-am-bern-1.0 4b29d6548b71df26c2fcf02aaa03b4dd6f0eefabf4645476501b2886cc0fa67b
cifar10/am-beta b1049a56a686b7445275e07d2a4c31630bc1fccd88ac5fda01f369f3f2cdd6f0
cifar10/am-beta-not-diverse 45c90b61d96f09601e594713a05a51e3450db17d5841cf83c2a08b9d019e81b9
cifar10/am-bern-0.875 29ee6aaa559e45d4893b521b9c9ca3f4bd0a3548257302f5cfffff80c018aae4
cifar10/am-bern-1.0 c28653b48b585f94a91ad27155d2b92005982b8ad8fe360b8e83b55c572e0822
cifar10/am-bern-0.875+adv 170361f8c283dbc27a7b8773f829749afa8ee87cfd7dd36f6b660c404a9e0e75
cifar10/single-am-bern-0.875/test abc7f5c29e9d641f286fd26cc97087f89c89211f1e3e61357e9683e7f1014748
cifar10/am-bern-0.875/test 6dd9c686abf3052d9a0b41f071d3ca64b0927533d6649755150612cef165a8e6
cifar10/am-bern-0.875+adv/test 29ef0c943c1c8da89416771effee5fc9cbe471430df95688dca6dcab48cc13d5
cifar100/single 82de1655ac23c4436298e497b501d880a8d50d5cd323e47c3330802f3d619ae5
cifar100/batch-ensemble 90785f8f5a2eced8b3fc7f4e8268fe99be318fe8381db4e1e9a4e4d1dcc36ba5
cifar100/be+sd 08d87fc27172f3990f9f0abb6cb51d56b09ca5995360297ae4fe4f0c9f4cb8a3
cifar100/be+sd-not-diverse f37d1474f1327cab457442459f950bd79799e28b79fae01e4ada87f614a27119
cifar100/be+adv 3f81713b8abc16dbe187d86e73ac45564a0ee30d54886b3c406f8fa44ffcd6d5
cifar100/be+adv-not-diverse c1ceab419675d1c1e8f61e65519f5bb0f253dcf4995710182c82b8eaa02fa4a8
cifar100/be+adv-1.0 e4ba1aebf2bc0159d5642ff09b2f29b66a6defa32d69b0bb4db420c0f47f42a2
cifar100/single-am-beta 74b41fca2d52b73200b8a993a43a24941d9ba5e35f67239088088b476adaf3a9
cifar100/single-am-bern-0.875 81eac5cf57df71ceb40e5700d44eefe7456d4b5fd17fdaa0d0c6ab5956ffa097
cifar100/single-am-bern-1.0 6967e13bf4226d55139aa3a510333197ae65db2e7a5214b74cc0a4fa41719ea5
cifar100/am-beta 747117ea68a4aa7b0ad6c47788d6a4c7077e3b3f03e1271cc812416f31421404
cifar100/am-beta-not-diverse 99ce8ebdb7974b8a5ae7546ed5c405fed51c116e948f56d98129cdd726925e33
cifar100/am-bern-0.875 2d213e121b4b9ffc242c1f5339b6cbb85bcc7b57c74ad45787dc6f7352ad7ab2
cifar100/am-bern-1.0 98810e2e88b5f0c7b0e0232aa268b078a8fe1587bba31e59bafee0b83bde04d1
cifar100/am-bern-0.875+adv 9992a23fa869b6e125b007b1430e9892cb3b8521d11be14ba38aefbd9502603e
cifar100/single-am-bern-0.875/test b3fb3bd6f028244e7784882692cb5715d33641a545c5d4740e91528cfc59974e
cifar100/am-bern-0.875/test b767cf71bee82c266bf86bc0724b919f1adb2b8e2b43fda8e0eff292d4d2ec9d
cifar100/am-bern-0.875+adv/test 937102267eb17bb79827451008f004217f41ba14d403ca311f33df6e9f7009bc
"""


def test_minus_zero_is_zero() -> None:
    def of_drops(first: float) -> Experiment:
        policy = MemberPolicy(stochastic_depth=StochasticDepth((first, 0.1, 0.1, 0.1)))
        return Experiment("x", "digits", learning_rate=first, policy=policy)

    assert of_drops(-0.0) == of_drops(0.0)
    assert config_hash(of_drops(-0.0)) == config_hash(of_drops(0.0))


def test_the_hashes_of_the_36_rows_are_pinned() -> None:
    pinned = dict(line.split() for line in HASHES.split("\n") if line)
    assert len(pinned) == len(set(pinned.values())) == 36
    assert {name: config_hash(find_experiment(name)) for name in pinned} == pinned


@pytest.mark.parametrize(
    ("experiment", "canonical"),
    [
        (Experiment("any", "cifar10"), '{"dataset":"cifar10"}'),
        (
            find_experiment("cifar10/single"),
            '{"dataset":"cifar10","epochs":200,"num_members":null,"warmup_steps":352}',
        ),
        (
            find_experiment("cifar10/am-bern-0.875"),
            '{"dataset":"cifar10","decay_rs":false,"policy":{"augmix":{}},"warmup_steps":352}',
        ),
        (
            find_experiment("cifar100/be+sd-not-diverse"),
            '{"dataset":"cifar100","decay_rs":false,'
            '"policy":{"stochastic_depth":{"assignment":"constant","drop_rate":[0.075]}},"warmup_steps":352}',
        ),
    ],
    ids=lambda value: value.name if isinstance(value, Experiment) else "",
)
def test_a_hash_is_of_what_differs_from_the_defaults(experiment: Experiment, canonical: str) -> None:
    assert config_hash(experiment) == hashlib.sha256(canonical.encode()).hexdigest()


CHANGES = """train_on=all starts_from=abc model=resnet cardinality=32 base_width=4 depth=14 width=8 num_members=none
ensemble=deep batchnorm=per-member init_std=0.1 epochs=50 steps=64 batch_size=64 optimiser=adamw learning_rate=0.05
final_learning_rate=0 warmup_steps=0 momentum=0.8 weight_decay=0 decay_rs=true decay_linear_rs=true
decay_batchnorm=false member_rate=0.5
policy.flip=false policy.crop_padding=2 policy.crop_scale=0.5,1 policy.crop_per_view=true
policy.augmix=none policy.augmix.severity=1,2,3,3 policy.augmix.assignment=shuffled policy.augmix.mixing=beta
policy.augmix.p=1 policy.augmix.beta=2 policy.augmix.jsd=12 policy.adversarial=none
policy.adversarial.severity=0,0,0,0.1 policy.adversarial.assignment=shuffled policy.adversarial.p=1
policy.adversarial.space=pixel policy.adversarial.clip=true policy.stochastic_depth=none
policy.stochastic_depth.drop_rate=0,0,0,0 policy.stochastic_depth.assignment=shuffled
policy.stochastic_depth.rescale=false""".split()


NESTED = {"policy": MemberPolicy, "augmix": AugMix, "adversarial": Adversarial, "stochastic_depth": StochasticDepth}


def row_with(setting: str) -> Experiment:
    """One that has the augmentation of a setting already, so that the setting alone changes."""
    if setting in ("depth", "width"):
        return override(find_experiment("cifar10/am-bern-0.875"), ["model=resnet"])
    for part, name in (
        ("num_members", "batch-ensemble"),
        ("augmix.beta", "am-beta"),
        ("adversarial", "be+adv"),
        ("stochastic_depth", "be+sd"),
    ):
        if part in setting:
            return find_experiment(f"cifar10/{name}")
    return find_experiment("cifar10/am-bern-0.875")


@pytest.mark.parametrize("assignment", CHANGES)
def test_whatever_changes_the_result_changes_the_hash(assignment: str) -> None:
    row = row_with(assignment.split("=")[0])
    assert config_hash(override(row, [assignment])) != config_hash(row)


@pytest.mark.parametrize("assignment", ["model_options.width=64", "model_options.depth=2", "pretrained=true"])
def test_whatever_changes_a_model_by_name_changes_the_hash(assignment: str) -> None:
    row = replace(find_experiment("cifar10/batch-ensemble"), model="timm/resnet18", init_std=None)
    assert config_hash(override(row, [assignment])) != config_hash(row)


@pytest.mark.parametrize("setting", [setting.name for setting in fields(OwnImages)])
def test_how_a_users_images_are_read_and_split_changes_the_hash(setting: str) -> None:
    row = replace(find_experiment("cifar10/single"), dataset="images", images=OwnImages())
    value = {"size": "32", "grey": "true", "val": "0.2", "test": "0.2", "split_seed": "1"}[setting]
    assert config_hash(override(row, [f"images.{setting}={value}"])) != config_hash(row)


def settings(kind: type[Any], prefix: str = "") -> Iterator[str]:
    for setting in fields(kind):
        yield prefix + setting.name
        if setting.name in NESTED:
            yield from settings(NESTED[setting.name], f"{prefix}{setting.name}.")


def test_no_setting_is_left_out_of_the_changes() -> None:
    changed = {assignment.split("=")[0] for assignment in CHANGES}
    assert set(settings(Experiment)) - changed == {
        "name",
        "dataset",
        "images",
        "policy",
        "model_options",
        "pretrained",
    }


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
