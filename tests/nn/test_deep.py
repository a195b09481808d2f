"""Deep ensembles: each member is the network that it would be alone."""

import copy
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, deep_ensemble, extract_member, measure_health, parameter_groups, resnet, resnext29
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.one_member import fold


def make(members: int = 3, **options: Any) -> Ensemble:
    """Small ResNets in float64, drawn from one generator."""
    generator = torch.Generator().manual_seed(1)
    return deep_ensemble(lambda: resnet(5, width=4, generator=generator, **options), members).double()


def draw(*shape: int, seed: int = 2) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def members_of(ensemble: Ensemble) -> list[nn.Module]:
    """Each member alone: a copy, in the ensemble's mode."""
    return [extract_member(ensemble, i) for i in range(ensemble.num_members)]


@pytest.mark.parametrize("training", [True, False], ids=["training", "evaluation"])
@pytest.mark.parametrize("drops", [True, False], ids=["drops some", "keeps all"])
def test_each_members_logits_are_those_of_its_network_alone(training: bool, drops: bool) -> None:
    ensemble = make().train(training)
    views_MBCHW = draw(3, 4, 3, 8, 8)
    keep = (draw(ensemble.num_blocks, 12, seed=3) > 0) / 0.5 if drops else None
    alone = members_of(ensemble)
    logits_MBK = ensemble(views_MBCHW, keep=keep)
    assert logits_MBK.shape == (3, 4, 5)
    for i, member in enumerate(alone):
        named = {} if keep is None else {"keep": keep.view(3, 3, 4)[:, i]}
        torch.testing.assert_close(logits_MBK[i], member(views_MBCHW[i], **named), rtol=1e-12, atol=1e-12)
    if keep is not None:
        assert not torch.allclose(logits_MBK, ensemble(views_MBCHW)), "the mask was at work"


def test_batchnorm_of_a_member_sees_its_own_rows_alone() -> None:
    ensemble, views_MBCHW = make(2).train(), draw(2, 4, 3, 8, 8)
    first, second = members_of(ensemble)
    other = copy.deepcopy(ensemble)
    ensemble(views_MBCHW)
    first(views_MBCHW[0])
    other(torch.stack([views_MBCHW[0], 10 + views_MBCHW[1]]))
    found = extract_member(ensemble, 0).state_dict()
    for twin in (first, extract_member(other, 0)):
        assert all(torch.equal(value, found[name]) for name, value in twin.state_dict().items())
    assert not torch.equal(found["stem.1.running_mean"], second.state_dict()["stem.1.running_mean"])


def test_the_mean_loss_gives_each_member_its_share_of_its_own_gradient() -> None:
    ensemble, views_MBCHW, labels_B = make(2).train(), draw(2, 4, 3, 8, 8), torch.tensor([0, 1, 2, 3])
    alone = members_of(ensemble)
    cross_entropy(ensemble(views_MBCHW).flatten(0, 1), labels_B.repeat(2)).backward()
    for i, member in enumerate(alone):
        cross_entropy(member(views_MBCHW[i]), labels_B).backward()
        named = dict(ensemble.get_submodule(f"network.members.{i}").named_parameters())
        for name, parameter in member.named_parameters():
            assert parameter.grad is not None
            torch.testing.assert_close(named[name].grad, parameter.grad / 2, rtol=1e-10, atol=1e-14)


class TwoInputs(nn.Module):
    """Takes tokens, a weight for each of them by name and a number, and gives a dict."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(7, 6)
        self.head = nn.Linear(6, 3)

    def forward(self, tokens_NT: Tensor, *, weights_NT: Tensor, power: int = 1) -> dict[str, Tensor]:
        embedded_NTC = self.embedding(tokens_NT) * weights_NT[..., None] ** power
        return {"scores": self.head(embedded_NTC.sum(dim=1))}


def scores(output: Mapping[str, Tensor]) -> Tensor:
    return output["scores"]


def test_every_tensor_argument_is_divided_and_the_rest_goes_to_all() -> None:
    network = deep_ensemble(TwoInputs, 2, logits=scores).network
    tokens_NT, weights_NT = torch.arange(12).view(4, 3) % 7, torch.rand(4, 3)
    logits_NK = network(tokens_NT, weights_NT=weights_NT, power=2)
    assert isinstance(network, IndependentMembers)
    for i, rows in enumerate((slice(0, 2), slice(2, 4))):
        expected = network.members[i](tokens_NT[rows], weights_NT=weights_NT[rows], power=2)["scores"]
        torch.testing.assert_close(logits_NK[rows], expected)


def test_an_output_that_is_no_tensor_needs_a_word() -> None:
    network = deep_ensemble(TwoInputs, 2).network
    with pytest.raises(InputError, match="say where the logits are: logits=lambda output"):
        network(torch.zeros(4, 3, dtype=torch.int64), weights_NT=torch.ones(4, 3))


def test_the_prediction_is_the_mean_of_the_members() -> None:
    ensemble, images_BCHW = make(), draw(4, 3, 8, 8)
    probs_MBK = torch.stack([member.eval()(images_BCHW).softmax(dim=-1) for member in members_of(ensemble)])
    torch.testing.assert_close(ensemble.predict(images_BCHW), probs_MBK.mean(dim=0))
    assert ensemble.training


def test_members_start_apart_and_a_generator_brings_them_back() -> None:
    first, again = make(), make()
    assert all(torch.equal(value, again.state_dict()[name]) for name, value in first.state_dict().items())
    stems = [first.get_parameter(f"network.members.{i}.stem.0.weight") for i in range(3)]
    assert not any(torch.equal(stems[i], stems[j]) for i, j in ((0, 1), (0, 2), (1, 2)))


def the_same() -> Callable[[], nn.Module]:
    network = nn.Linear(3, 2)
    return lambda: network


def sharing_a_layer() -> Callable[[], nn.Module]:
    backbone = nn.Linear(3, 3)
    return lambda: nn.Sequential(backbone, nn.Linear(3, 2))


def sharing_statistics() -> Callable[[], nn.Module]:
    norm = nn.BatchNorm1d(3, affine=False)
    return lambda: nn.Sequential(norm, nn.Linear(3, 2))


def from_one_seed() -> nn.Module:
    return resnet(5, width=4, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("factory", "message"),
    [
        (the_same(), "members 0 and 1 are the same network; factory must make a new network in each call"),
        (sharing_a_layer(), "members 0 and 1 share parameters or buffers; factory must make every part"),
        (sharing_statistics(), "members 0 and 1 share parameters or buffers"),
        (from_one_seed, "members 0 and 1 start from the same weights; factory must draw new ones in each call"),
        (nn.Linear(2, 2), r"factory is a Linear; it must be a function .*, such as lambda: Net\(\)"),
        (lambda: "resnet", "factory gave str; it must give a plain network"),
        (lambda: resnet(5, num_members=2, width=4), "factory gave Ensemble; it must give a plain network"),
    ],
)
def test_members_that_would_not_be_independent_are_refused(factory: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        deep_ensemble(factory, 2)


def test_members_that_are_alike_in_part_are_not_refused() -> None:
    """Pretrained bodies with heads of their own, say."""
    body = nn.Linear(3, 3)
    assert deep_ensemble(lambda: nn.Sequential(copy.deepcopy(body), nn.Linear(3, 2)), 3).num_members == 3


def test_wrong_numbers_are_named() -> None:
    with pytest.raises(InputError, match="num_members is 0; it must be a whole number of 1 or more"):
        deep_ensemble(lambda: nn.Linear(3, 2), 0)
    ensemble = make(2)
    with pytest.raises(InputError, match="a batch of 3 rows cannot be divided among 2 members"):
        ensemble.network(draw(3, 3, 8, 8))
    for index in (-1, 2):
        with pytest.raises(InputError, match=f"member is {index}; it must be a whole number from 0 to 1"):
            extract_member(ensemble, index)


def test_an_extracted_member_is_a_copy() -> None:
    ensemble = make(2).eval()
    member = extract_member(ensemble, 1)
    assert not member.training
    nn.init.zeros_(member.get_parameter("classifier.weight"))
    assert ensemble.get_parameter("network.members.1.classifier.weight").abs().sum() > 0


def test_folded_members_are_the_members() -> None:
    ensemble, images_BCHW = make(), draw(4, 3, 8, 8)
    ensemble.train()(images_BCHW.expand(3, -1, -1, -1, -1))  # moves the running statistics
    expected_MBK = ensemble.eval()(images_BCHW.expand(3, -1, -1, -1, -1))
    folded = fold(ensemble)
    assert not any(isinstance(module, nn.BatchNorm2d) for module in folded.modules())
    torch.testing.assert_close(torch.stack([member(images_BCHW) for member in folded]), expected_MBK)


def test_the_mode_is_that_of_the_networks() -> None:
    assert not any(module.training for module in deep_ensemble(lambda: resnet(5, width=4).eval(), 2).modules())


def test_stochastic_depth_needs_members_of_one_depth() -> None:
    assert make(2).num_blocks == 3
    depths = iter((8, 14))
    mixed = deep_ensemble(lambda: resnet(5, depth=next(depths), width=4), 2)
    assert mixed.num_blocks == 0
    with pytest.raises(InputError, match="no residual branches"):
        mixed(torch.zeros(2, 1, 3, 8, 8), keep=torch.ones(3, 2))


def test_it_compiles_as_one_graph() -> None:
    ensemble, views_MBCHW, keep = make(2).eval(), draw(2, 4, 3, 8, 8), draw(3, 8)
    compiled = torch.compile(ensemble, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(views_MBCHW, keep=keep), ensemble(views_MBCHW, keep=keep))


def test_its_parameters_are_grouped_as_those_of_a_single_network() -> None:
    single = {group["name"]: len(group["params"]) for group in parameter_groups(resnet(5, width=4), 0.1)}
    found = {group["name"]: len(group["params"]) for group in parameter_groups(make(3), 0.1)}
    assert found == {name: 3 * count for name, count in single.items()}
    assert set(found) == {"weights", "batchnorm"}


def test_the_channels_of_every_member_count_and_there_are_no_factors_to_lie_apart() -> None:
    ensemble = deep_ensemble(lambda: resnext29(5, cardinality=2, base_width=4), 2)
    with torch.no_grad():
        ensemble.get_parameter("network.members.1.stem.1.weight")[:3] = 0
    health, alone = measure_health(ensemble), measure_health(extract_member(ensemble, 0))
    assert (health.channels, health.dead_scales, alone.dead_scales) == (2 * alone.channels, 3, 0)
    assert (health.spread_r, health.spread_s) == (None, None)
