import pytest

from counterpoint.nn import parameter_groups, resnet


def test_parameter_groups_know_r_and_s() -> None:
    ensemble = resnet(5, 3, width=4)
    groups = {g["name"]: g for g in parameter_groups(ensemble, 5e-4)}
    kinds = ("weights", "member_biases", "batchnorm", "rs", "linear_rs")
    assert {name: g["weight_decay"] for name, g in groups.items()} == dict.fromkeys(kinds, 5e-4)
    ids = [id(p) for g in groups.values() for p in g["params"]]
    assert sorted(ids) == sorted(id(p) for p in ensemble.parameters())
    factors = {id(p) for name, p in ensemble.named_parameters() if name.endswith((".r", ".s"))}
    assert {id(p) for name in ("rs", "linear_rs") for p in groups[name]["params"]} == factors
    of_classifier = [ensemble.get_parameter(f"network.classifier.{name}") for name in "rs"]
    assert {id(p) for p in groups["linear_rs"]["params"]} == {id(p) for p in of_classifier}
    assert [id(p) for p in groups["member_biases"]["params"]] == [id(ensemble.get_parameter("network.classifier.bias"))]
    assert [g["name"] for g in parameter_groups(resnet(5), 0.1)] == ["weights", "batchnorm"]


@pytest.mark.parametrize(
    ("options", "spared"),
    [
        ({"decay_rs": False}, {"rs", "linear_rs"}),
        ({"decay_rs": False, "decay_linear_rs": True}, {"rs"}),
        ({"decay_linear_rs": False}, {"linear_rs"}),
        ({"decay_batchnorm": False}, {"batchnorm"}),
    ],
)
def test_what_the_weight_decay_spares(options: dict[str, bool], spared: set[str]) -> None:
    groups = parameter_groups(resnet(5, 3, width=4), 5e-4, **options)
    assert {g["name"] for g in groups if g["weight_decay"] == 0} == spared
    assert {g["weight_decay"] for g in groups} == {0, 5e-4}
