import pytest
import torch

from counterpoint.augment.stochastic_depth import branch_factors


def test_factors_drop_at_the_members_rate_and_keep_the_mean() -> None:
    uniform = torch.rand(3, 2, 100_000, generator=torch.Generator().manual_seed(0))
    factors = branch_factors(uniform, torch.tensor([[0.0], [0.25]]))
    assert (factors[:, 0] == 1).all()
    assert factors[:, 1].unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert abs((factors[:, 1] == 0).float().mean() - 0.25) < 0.005
    assert abs(factors[:, 1].mean() - 1) < 0.01
    unscaled = branch_factors(uniform, torch.tensor([[0.0], [0.25]]), rescale=False)
    assert torch.equal(unscaled, (factors > 0).float())
