import math
from dataclasses import replace

import pytest
import torch

from counterpoint.config import Experiment, override
from counterpoint.nn import Ensemble, resnet
from counterpoint.training.network import build_model
from counterpoint.training.optimiser import learning_rate, make_optimiser, set_learning_rate

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


def test_two_steps_equal_adamw_by_hand() -> None:
    model = Ensemble(resnet(3, width=2))
    optimiser = make_optimiser(model, replace(EXPERIMENT, optimiser="adamw", learning_rate=0.01, weight_decay=0.1))
    expected = {name: p.detach().double() for name, p in model.named_parameters()}
    mean, square = ({name: torch.zeros_like(p) for name, p in expected.items()} for _ in range(2))
    for step in (1, 2):
        for name, p in model.named_parameters():
            p.grad = torch.randn_like(p)
            mean[name] = 0.9 * mean[name] + 0.1 * p.grad
            square[name] = 0.999 * square[name] + 0.001 * p.grad**2
            moved = mean[name] / (1 - 0.9**step) / ((square[name] / (1 - 0.999**step)).sqrt() + 1e-8)
            expected[name] = expected[name] * (1 - 0.01 * 0.1) - 0.01 * moved
        optimiser.step()
    for name, p in model.named_parameters():
        torch.testing.assert_close(p.detach().double(), expected[name], rtol=1e-5, atol=1e-6)


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
