from counterpoint.nn import parameter_groups, resnet


def test_parameter_groups_know_r_and_s() -> None:
    ensemble = resnet(5, 3, width=4)
    groups = {g["name"]: g for g in parameter_groups(ensemble, 5e-4)}
    kinds = ("weights", "member_biases", "batchnorm", "rs")
    assert {name: g["weight_decay"] for name, g in groups.items()} == dict.fromkeys(kinds, 5e-4)
    ids = [id(p) for g in groups.values() for p in g["params"]]
    assert sorted(ids) == sorted(id(p) for p in ensemble.parameters())
    factors = {id(p) for name, p in ensemble.named_parameters() if name.endswith((".r", ".s"))}
    assert {id(p) for p in groups["rs"]["params"]} == factors
    assert [id(p) for p in groups["member_biases"]["params"]] == [id(ensemble.get_parameter("network.classifier.bias"))]
    for spared in ("rs", "batchnorm"):
        decays = {g["name"]: g["weight_decay"] for g in parameter_groups(ensemble, 5e-4, **{f"decay_{spared}": False})}
        assert decays == dict.fromkeys(kinds, 5e-4) | {spared: 0.0}
    assert [g["name"] for g in parameter_groups(resnet(5), 0.1)] == ["weights", "batchnorm"]
