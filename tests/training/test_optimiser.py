import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import pytest
import torch
from torch import Tensor
from torch.nn import Linear, Parameter

from counterpoint.config import Experiment, override
from counterpoint.data import parts_of
from counterpoint.nn import Ensemble, resnet
from counterpoint.policy import AugMix, MemberPolicy
from counterpoint.training.batches import epoch_batches
from counterpoint.training.engines import Engine
from counterpoint.training.loop import update
from counterpoint.training.network import build_model
from counterpoint.training.optimiser import learning_rate, make_optimiser, set_learning_rate
from counterpoint.training.step import TrainState
from tests.small import noise_data

EXPERIMENT = Experiment("test", "digits")


def test_cosine_from_a_tenth_to_a_millionth() -> None:
    rates = [learning_rate(EXPERIMENT, step, 101) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert rates[50] == pytest.approx((0.1 + 1e-6) / 2)
    assert rates[25] == pytest.approx(1e-6 + (0.1 - 1e-6) * (1 + math.sqrt(0.5)) / 2)
    assert rates[100] == pytest.approx(1e-6)
    assert learning_rate(EXPERIMENT, 0, 1) == pytest.approx(0.1)


def test_a_warmup_rises_evenly_to_the_cosine() -> None:
    warm = replace(EXPERIMENT, warmup_steps=4)
    plain = [learning_rate(EXPERIMENT, step, 101) for step in range(101)]
    rates = [learning_rate(warm, step, 101) for step in range(101)]
    assert rates[:4] == pytest.approx([0.2 * plain[0], 0.4 * plain[1], 0.6 * plain[2], 0.8 * plain[3]])
    assert rates[4:] == plain[4:]


def test_one_step_equals_nesterov_by_hand() -> None:
    model = Ensemble(resnet(3, width=2))
    optimiser = make_optimiser(model, EXPERIMENT)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    gradients = {}
    for name, p in model.named_parameters():
        p.grad = gradients[name] = torch.randn_like(p)
    optimiser.step()
    for name, p in model.named_parameters():
        decayed = gradients[name] + 5e-4 * before[name]
        velocity = decayed  # the momentum buffer starts as the first gradient
        torch.testing.assert_close(p.detach(), before[name] - 0.1 * (decayed + 0.9 * velocity))


class AdamWByHand:
    """The formula of Loshchilov and Hutter (2019), one parameter after another."""

    def __init__(self, parameters: Mapping[str, Tensor], kept: float) -> None:
        self.parameters, self.kept, self.steps = parameters, kept, 0
        self.mean, self.square = ({name: torch.zeros_like(p) for name, p in parameters.items()} for _ in range(2))

    @torch.no_grad()
    def step(self, gradients: Mapping[str, Tensor], rates: Mapping[str, float], decays: Mapping[str, float]) -> None:
        self.steps += 1
        for name, parameter in self.parameters.items():
            gradient = gradients[name]
            self.mean[name] = self.kept * self.mean[name] + (1 - self.kept) * gradient
            self.square[name] = 0.999 * self.square[name] + 0.001 * gradient**2
            mean = self.mean[name] / (1 - self.kept**self.steps)
            square = self.square[name] / (1 - 0.999**self.steps)
            parameter -= rates[name] * decays[name] * parameter
            parameter -= rates[name] * mean / (square.sqrt() + 1e-8)


def test_adamw_trains_a_batch_ensemble_as_by_hand() -> None:
    """With every group, its own rates and decays, and the schedule. Only the gradients come from the same network."""
    experiment = replace(
        EXPERIMENT,
        model="resnet",
        width=2,
        num_members=2,
        policy=MemberPolicy(augmix=AugMix((1.0, 4.0))),
        batch_size=6,
        optimiser="adamw",
        learning_rate=0.02,
        final_learning_rate=0.001,
        warmup_steps=3,
        momentum=0.8,
        weight_decay=0.3,
        decay_rs=False,
        decay_linear_rs=True,
        decay_batchnorm=False,
        member_rate=0.5,
    )
    model = build_model(experiment, 3, 3, seed=0).double().train()
    engine = Engine(TrainState.before_first_step(model, experiment), experiment, model)
    kinds = {name: kind_by_name(name) for name, _ in model.named_parameters()}
    assert set(kinds.values()) == {"weights", "member_biases", "batchnorm", "rs", "linear_rs"}
    decays = {name: 0.0 if kind in ("rs", "batchnorm") else 0.3 for name, kind in kinds.items()}
    shares = {name: 0.5 if kind in ("rs", "linear_rs", "member_biases") else 1.0 for name, kind in kinds.items()}
    expected = {name: p.detach().clone() for name, p in model.named_parameters()}
    start, by_hand = {name: p.clone() for name, p in expected.items()}, AdamWByHand(expected, kept=0.8)
    part = parts_of(noise_data(48, 3), replace(experiment, train_on="all")).train
    for step, batch in enumerate(epoch_batches(part, experiment, seed=0, epoch=0, num_blocks=3, dtype=torch.float64)):
        update(engine, batch, total=8)
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        highest = 0.001 + 0.019 * (1 + math.cos(math.pi * step / 7)) / 2
        rate = highest * min((step + 1) / 4, 1)
        by_hand.step(gradients, {name: rate * share for name, share in shares.items()}, decays)
    assert by_hand.steps == 8
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach(), expected[name], rtol=1e-10, atol=1e-12, msg=name)
        assert not torch.allclose(p.detach(), start[name], atol=1e-3), name


def kind_by_name(name: str) -> str:
    """In counterpoint's ResNets the first layer of a pair is the convolution, and the second its BatchNorm."""
    *_, layer, parameter = name.split(".")
    if layer == "classifier":
        return {"r": "linear_rs", "s": "linear_rs", "bias": "member_biases"}.get(parameter, "weights")
    return "rs" if parameter in ("r", "s") else "batchnorm" if layer == "1" else "weights"


@pytest.mark.parametrize("name", ["sgd", "adamw"])
def test_a_parameter_may_lie_in_memory_as_it_likes(name: Literal["sgd", "adamw"]) -> None:
    """Somebody's network may have a weight that is a part of a larger tensor, or that is transposed."""
    experiment = replace(EXPERIMENT, optimiser=name, learning_rate=0.01)
    values, gradient = torch.randn(6, 8), torch.randn(6, 8)
    ways = (values.clone(), values.t().contiguous().t(), torch.stack([values, values], dim=2)[..., 0])
    after = []
    for way in ways:
        layer = Linear(8, 6, bias=False)
        layer.weight = Parameter(way)
        optimiser = make_optimiser(Ensemble(layer), experiment)
        for _ in range(3):
            optimiser.zero_grad()
            (gradient * layer.weight).sum().backward()
            optimiser.step()
        after.append(layer.weight.detach())
    assert not torch.allclose(after[0], values, atol=1e-3)
    for found in after[1:]:
        torch.testing.assert_close(found, after[0])


def test_adamw_takes_a_momentum_that_is_a_whole_number() -> None:
    """Nothing of the gradients before is kept: each step has the sign of its own gradient."""
    weight = Linear(1, 1, bias=False)
    torch.nn.init.ones_(weight.weight)
    experiment = replace(EXPERIMENT, optimiser="adamw", learning_rate=0.01, weight_decay=0.0, momentum=0)
    optimiser = make_optimiser(Ensemble(weight), experiment)
    for gradient in (2.0, -2.0):
        weight.weight.grad = torch.tensor([[gradient]])
        optimiser.step()
    assert weight.weight.item() == pytest.approx(1.0)


def ensemble() -> Ensemble:
    return build_model(replace(EXPERIMENT, model="resnet", width=2, num_members=2), 3, 3, seed=0)


def test_a_rate_in_memory_is_changed_where_it_lies() -> None:
    """A recorded step goes on reading it there."""
    optimiser = make_optimiser(ensemble(), replace(EXPERIMENT, member_rate=0.5))
    rates = {group["name"]: torch.tensor(0.1) for group in optimiser.param_groups}
    for group in optimiser.param_groups:
        group["lr"] = rates[group["name"]]
    set_learning_rate(optimiser, 0.025)
    assert {name: float(rate) for name, rate in rates.items()} == pytest.approx(
        {"weights": 0.025, "member_biases": 0.0125, "batchnorm": 0.025, "rs": 0.0125, "linear_rs": 0.0125}
    )


def test_what_is_the_members_own_can_learn_at_another_rate() -> None:
    optimiser = make_optimiser(ensemble(), replace(EXPERIMENT, member_rate=0.5))
    scaled = {"weights": 0.1, "member_biases": 0.05, "batchnorm": 0.1, "rs": 0.05, "linear_rs": 0.05}
    assert {group["name"]: group["lr"] for group in optimiser.param_groups} == pytest.approx(scaled)
    set_learning_rate(optimiser, 0.02)
    later = {name: rate / 5 for name, rate in scaled.items()}
    assert {group["name"]: group["lr"] for group in optimiser.param_groups} == pytest.approx(later)


@pytest.mark.parametrize("optimiser", ["sgd", "adamw"])
@pytest.mark.parametrize(
    ("settings", "spared"),
    [
        ([], set()),
        (["decay_rs=false"], {"rs", "linear_rs"}),
        (["decay_rs=false", "decay_linear_rs=true"], {"rs"}),
        (["decay_batchnorm=false"], {"batchnorm"}),
    ],
)
def test_what_the_experiment_spares_is_not_decayed(settings: list[str], spared: set[str], optimiser: str) -> None:
    settings = [*settings, f"optimiser={optimiser}", "weight_decay=5e-4"]
    groups = make_optimiser(ensemble(), override(EXPERIMENT, settings)).param_groups
    kinds = ("weights", "member_biases", "batchnorm", "rs", "linear_rs")
    assert {g["name"]: g["weight_decay"] for g in groups} == {k: 0.0 if k in spared else 5e-4 for k in kinds}
