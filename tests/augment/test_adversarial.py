"""Eq. 1 against a direct evaluation with autograd in float64, view by view."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from counterpoint.augment.adversarial import perturb, sample_amounts
from counterpoint.nn import Ensemble, resnet
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.policy import Adversarial
from counterpoint.seeding import Stream

SETTINGS = Adversarial((0.05, 0.1, 0.0))
STREAMS = [Stream(0, "adversarial", epoch=1, member=m) for m in range(3)]


def ensemble() -> Ensemble:
    model = resnet(4, 3, width=4, generator=torch.Generator().manual_seed(0))
    assert isinstance(model, Ensemble)
    return model.double().train()


def views_and_labels() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.rand(3, 5, 3, 8, 8, dtype=torch.float64, generator=generator) * 2 - 1, torch.arange(5) % 4


@pytest.mark.parametrize("space", ["network", "pixel"])
@pytest.mark.parametrize("clip", [False, True], ids=["unclipped", "clipped"])
@pytest.mark.parametrize(
    "normalisation", [NORMALISATION, Normalisation((0.1, 0.5, 0.4), (0.4, 0.5, 0.6))], ids=["ours", "by channel"]
)
def test_perturb_is_the_formula(space: str, clip: bool, normalisation: Normalisation) -> None:
    model = ensemble()
    views, labels = views_and_labels()
    severity_MB = torch.tensor(SETTINGS.severity, dtype=torch.float64)[:, None].expand(3, 5)
    amount_MB = sample_amounts(torch.arange(5), severity_MB, 0.875, STREAMS)

    def loss(x: Tensor) -> Tensor:
        return cross_entropy(model(x).flatten(0, 1), labels.repeat(3))

    leaf = views.clone().requires_grad_()
    loss(leaf).backward()
    assert leaf.grad is not None
    expected = views.clone()
    for member in range(3):
        for row in range(5):
            u, coin = STREAMS[member].uniform(torch.tensor([row]), 2)[0].tolist()
            m = 1.0 if coin < 0.875 else 0.0
            step = m / 0.875 * u * SETTINGS.severity[member]
            sign = leaf.grad[member, row].sign()
            if space == "pixel":  # eq. 1 in [0, 1], then normalised again
                moved = normalisation.apply(normalisation.undo(views[member, row]) + step * sign)
            else:
                moved = views[member, row] + step * sign
            if clip:  # in [0, 1], then normalised again
                moved = normalisation.apply(normalisation.undo(moved).clamp(0, 1))
            expected[member, row] = moved
    settings = replace(SETTINGS, space=space, clip=clip)  # type: ignore[arg-type]
    moved = perturb(loss, views, amount_MB, settings, normalisation)
    torch.testing.assert_close(moved, expected, rtol=0, atol=1e-7)


def test_a_member_of_severity_0_sees_its_view_unchanged() -> None:
    model = ensemble()
    views, labels = views_and_labels()
    severity_MB = torch.tensor(SETTINGS.severity)[:, None].expand(3, 5)
    amount_MB = sample_amounts(torch.arange(5), severity_MB, 0.875, STREAMS)
    moved = perturb(lambda x: cross_entropy(model(x).flatten(0, 1), labels.repeat(3)), views, amount_MB, SETTINGS)
    assert torch.equal(moved[2], views[2])
    assert not torch.equal(moved[0], views[0])
    assert not moved.requires_grad


def test_amounts_have_the_right_distribution() -> None:
    """m/E[m]·u·s: zero with probability 1 − p, otherwise uniform up to s/p, and s/2 on average."""
    numbers = torch.arange(40_000)
    severity_MB = torch.tensor([[0.1], [0.2]]).expand(2, 40_000)
    amount_MB = sample_amounts(numbers, severity_MB, 0.875, STREAMS[:2])
    for amount, severity in zip(amount_MB, (0.1, 0.2), strict=True):
        assert abs((amount == 0).double().mean() - 0.125) < 0.006
        assert abs(amount.mean() / (severity / 2) - 1) < 0.02
        assert 0.99 * severity / 0.875 < amount.max() <= severity / 0.875
    assert abs(torch.corrcoef(amount_MB)[0, 1]) < 0.02
