import math

import pytest
import torch
from torch import Tensor, nn

from counterpoint.augment.stochastic_depth import branch_factors
from counterpoint.errors import InputError
from counterpoint.nn import BatchEnsembleConv2d, BatchEnsembleLinear, Ensemble, parameter_groups, resnet, resnext29
from counterpoint.nn.norm import left_untouched


def count_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def count_macs(model: nn.Module, image: Tensor) -> int:
    """Multiply-adds of every convolution and linear layer for one image, counted by hooks."""
    total = 0

    def hook(layer: nn.Module, _: object, output: Tensor) -> None:
        nonlocal total
        total += output[0].numel() * layer.weight[0].numel()  # type: ignore[index]

    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            layer.register_forward_hook(hook)
    model(image)
    return total


def test_resnext29_is_the_one_of_the_augmix_code() -> None:
    """The figures of docs/paper.md, 1."""
    network = resnext29(10)
    convolutions = [m for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert count_parameters(network) == 6_807_882
    assert (len(convolutions), sum(isinstance(m, nn.Linear) for m in network.modules())) == (31, 1)
    assert round(count_macs(network.eval(), torch.randn(1, 3, 32, 32)) / 1e9, 2) == 1.07
    assert count_parameters(resnext29(10, cardinality=32, base_width=4)) == 4_775_754


def test_every_layer_of_an_ensemble_has_r_and_s() -> None:
    ensemble = resnext29(10, num_members=4)
    layers = [m for m in ensemble.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == 32
    assert all(isinstance(m, BatchEnsembleConv2d | BatchEnsembleLinear) for m in layers)
    factors = sum(m.in_channels + m.out_channels for m in layers if isinstance(m, BatchEnsembleConv2d))
    extra = 4 * (factors + 1024 + 10) + 3 * 10  # r and s of the linear layer, and three more biases
    assert count_parameters(ensemble) == 6_807_882 + extra
    assert ensemble(torch.randn(4, 2, 3, 32, 32)).shape == (4, 2, 10)


def test_initial_weights_follow_the_specification() -> None:
    network = resnext29(10, generator=torch.Generator().manual_seed(0))
    for conv in (m for m in network.modules() if isinstance(m, nn.Conv2d)):
        std = math.sqrt(2 / (math.prod(conv.kernel_size) * conv.out_channels))
        assert abs(conv.weight.std() / std - 1) < 5 / math.sqrt(conv.weight.numel())
    linear = network.classifier
    assert isinstance(linear, nn.Linear)
    assert abs(linear.weight.std() / math.sqrt(2 / 1024) - 1) < 0.05
    assert linear.bias.abs().max() == 0


def test_a_generator_fixes_the_weights() -> None:
    first, again, reseeded = (resnet(3, 2, generator=torch.Generator().manual_seed(s)).state_dict() for s in (0, 0, 1))
    assert all(torch.equal(first[k], again[k]) for k in first)
    assert not torch.equal(first["network.stem.0.r"], reseeded["network.stem.0.r"])


@pytest.mark.parametrize("members", [None, 2])
def test_small_resnet_runs_on_grey_images_of_any_size(members: int | None) -> None:
    network = resnet(7, members, depth=14, width=4, in_channels=1)
    model = network if isinstance(network, Ensemble) else Ensemble(network)
    assert model(torch.randn(members or 1, 3, 1, 20, 28)).shape == (members or 1, 3, 7)
    with pytest.raises(InputError, match="depth is 9"):
        resnet(7, depth=9)


def test_prediction_is_the_mean_of_the_members_probabilities() -> None:
    ensemble = resnet(5, 3, width=4)
    assert isinstance(ensemble, Ensemble)
    images = torch.randn(4, 3, 16, 16)
    ensemble.train()
    probs_MBK = ensemble.predict_members(images)
    assert ensemble.training
    with torch.no_grad():
        logits = ensemble.eval()(torch.stack([images] * 3))
    torch.testing.assert_close(probs_MBK, logits.softmax(-1))
    torch.testing.assert_close(ensemble.predict(images), (probs_MBK[0] + probs_MBK[1] + probs_MBK[2]) / 3)


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


class TestStochasticDepth:
    def test_factors_drop_at_the_members_rate_and_keep_the_mean(self) -> None:
        uniform = torch.rand(3, 2, 100_000, generator=torch.Generator().manual_seed(0))
        factors = branch_factors(uniform, torch.tensor([[0.0], [0.25]]))
        assert (factors[:, 0] == 1).all()
        assert factors[:, 1].unique().tolist() == [0.0, pytest.approx(4 / 3)]
        assert abs((factors[:, 1] == 0).float().mean() - 0.25) < 0.005
        assert abs(factors[:, 1].mean() - 1) < 0.01
        unscaled = branch_factors(uniform, torch.tensor([[0.0], [0.25]]), rescale=False)
        assert torch.equal(unscaled, (factors > 0).float())

    @pytest.mark.parametrize("build", [resnext29, resnet], ids=["resnext29", "resnet"])
    def test_a_dropped_branch_leaves_the_shortcut(self, build: object) -> None:
        """Each block by hand: relu(shortcut + factor · branch), for every row its own factor."""
        network = build(4).eval()  # type: ignore[operator]
        images = torch.randn(3, 3, 16, 16)
        keep = torch.tensor([0.0, 1.0, 2.0]).repeat(network.num_blocks, 1)
        keep[1:, 0] = 1
        x = torch.relu(network.stem(images))
        for block, keep_N in zip(network.blocks, keep, strict=True):
            full = block(x)
            shortcut = torch.relu(block.shortcut(x))
            inner = block(x, torch.full((3,), 2.0))
            rows = {0.0: shortcut, 1.0: full, 2.0: inner}
            x = torch.stack([rows[float(k)][n] for n, k in enumerate(keep_N)])
        expected = network.classifier(x.mean(dim=(2, 3)))
        torch.testing.assert_close(network(images, keep), expected)

    def test_without_a_mask_nothing_is_dropped(self) -> None:
        ensemble = resnet(5, 2, width=4).train()
        assert isinstance(ensemble, Ensemble)
        views = torch.randn(2, 8, 3, 16, 16)
        with left_untouched(ensemble):
            assert torch.equal(ensemble(views), ensemble(views, torch.ones(ensemble.num_blocks, 16)))
            assert not torch.equal(ensemble(views), ensemble(views, torch.zeros(ensemble.num_blocks, 16)))

    def test_a_network_without_branches_takes_no_mask(self) -> None:
        with pytest.raises(InputError, match="Flatten has no residual branches that counterpoint can drop"):
            Ensemble(nn.Flatten(), 1)(torch.randn(1, 2, 3, 4, 4), torch.ones(1, 2))


def test_the_adversarial_pass_leaves_the_model_untouched() -> None:
    network = resnet(5, width=4)
    before = {k: v.clone() for k, v in network.state_dict().items()}
    images = torch.randn(4, 3, 16, 16)
    with left_untouched(network):
        inside = network(images)
    assert not inside.requires_grad
    assert all(torch.equal(before[k], v) for k, v in network.state_dict().items())
    outside = network(images)
    torch.testing.assert_close(outside, inside)
    assert outside.requires_grad
    assert not all(torch.equal(before[k], v) for k, v in network.state_dict().items())
