"""Pixels to what networks see, and back."""

import pytest
import torch

from counterpoint.augment.standard import normalise
from counterpoint.normalisation import NORMALISATION, Normalisation


def test_networks_see_minus_one_to_one() -> None:
    assert NORMALISATION.limits == (-1.0, 1.0)
    assert torch.equal(normalise(torch.tensor([0.0, 0.25, 1.0])), torch.tensor([-1.0, -0.5, 1.0]))


def test_another_one_by_hand() -> None:
    other = Normalisation(mean=0.2, std=0.4)
    assert other.limits == pytest.approx((-0.5, 2.0))
    unit = torch.rand(5, dtype=torch.float64)
    torch.testing.assert_close(other.apply(unit), (unit - 0.2) / 0.4)
    torch.testing.assert_close(other.undo(other.apply(unit)), unit)
