"""The conversion matrix's five checks: a right conversion passes them, and each finds the fault it is for."""

from collections.abc import Callable
from dataclasses import replace

import torch
from conversion.checks import Converted, gradients, independent, kept, round_trip, settle, step
from torch import Tensor, nn

from counterpoint.nn import batch_ensemble

X = (torch.randn(2, 4, generator=torch.Generator().manual_seed(0)),)


class Network(nn.Module):
    """Two layers, a third that is not used, and a place for a fault."""

    def __init__(self, fault: Callable[[Tensor], Tensor] = lambda hidden: hidden) -> None:
        super().__init__()
        self.first, self.second, self.unused = nn.Linear(4, 6), nn.Linear(6, 3), nn.Linear(6, 3)
        self.fault = fault

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.fault(self.first(x).relu())
        self.unused(hidden)
        return self.second(hidden)


def convert(network: nn.Module, init_std: float = 0.1, exclude: tuple[str, ...] = ("unused",)) -> Converted:
    ensemble = batch_ensemble(network, 3, init_std, exclude=exclude, generator=torch.Generator().manual_seed(0))
    factors = {name: p for name, p in ensemble.named_parameters() if name.endswith((".r", ".s"))}
    return Converted(ensemble, lambda _: ensemble(X[0].expand(3, *X[0].shape)), factors)


def make(fault: Callable[[Tensor], Tensor] = lambda hidden: hidden, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return settle(Network(fault), X)


def cut_off(layer: nn.Module) -> Callable[[Tensor, Tensor], Tensor]:
    """The layer's own function for its factors and bias, without their gradients."""
    return lambda values_MC, like: type(layer)._of_rows(layer, values_MC.detach(), like)  # type: ignore[attr-defined]


def backwards(logits: Tensor) -> Tensor:
    """The same values, with gradients that point the wrong way."""
    return 2 * logits.detach() - logits


def test_a_right_conversion_passes() -> None:
    model = make()
    converted = convert(model)
    assert independent(converted, X) is None
    assert kept(convert(model, init_std=0), X, model(*X).detach()) is None
    assert gradients(converted, X) is None
    assert round_trip(converted, convert(make(seed=1)), X) is None
    assert step(converted, X) is None


def test_independent_finds_rows_that_mix() -> None:
    found = independent(convert(make(lambda hidden: hidden - hidden.mean(0))), X)
    assert found is not None
    assert found.startswith("member 0's factors change the logits of member 1")


def test_independent_finds_factors_without_effect() -> None:
    found = independent(convert(make(lambda hidden: 0 * hidden)), X)
    assert found == "member 0's own factors change its logits by 0.0e+00 of the largest only"


def test_kept_finds_other_logits() -> None:
    model = make()
    assert (
        kept(convert(model, init_std=0), X, 1.001 * model(*X).detach()) == "the logits differ by 1.0e-03 of the largest"
    )


def test_gradients_finds_a_layer_that_no_logit_depends_on() -> None:
    found = gradients(convert(make(), exclude=()), X)
    assert found == "no logit depends on 1 of the layers, converted or not: network.unused"


def test_gradients_finds_factors_that_are_cut_off() -> None:
    converted = convert(make())
    layer = converted.module.get_submodule("network.first")
    layer.register_forward_pre_hook(lambda layer, _: setattr(layer, "_of_rows", cut_off(layer)))
    found = gradients(converted, X)
    assert found == "none at 2 of 4 factors: network.first.r, network.first.s"


def test_round_trip_finds_what_is_not_in_the_state() -> None:
    doubled, plain = convert(make(lambda hidden: 2 * hidden)), convert(make(seed=1))
    assert "after loading" in str(round_trip(doubled, plain, X))


def test_step_finds_a_loss_that_rises() -> None:
    converted = convert(make())
    found = step(replace(converted, logits=lambda inputs: backwards(converted.logits(inputs))), X)
    assert found is not None
    assert found.startswith("the loss goes from")
