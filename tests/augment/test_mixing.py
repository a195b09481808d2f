import pytest
import torch
from scipy import stats

from counterpoint.augment.mixing import mixing_weights
from counterpoint.errors import InputError
from counterpoint.seeding import Stream

INDICES = torch.arange(20_000)


@pytest.mark.parametrize("p", [0.0, 0.25, 0.875, 1.0])
def test_bernoulli_augments_the_share_p(device: str, p: float) -> None:
    m_N = mixing_weights("bernoulli", INDICES.to(device), Stream(0, "mixing"), p=p)
    assert m_N.dtype == torch.float32
    assert set(m_N.unique().tolist()) <= {0.0, 1.0}
    assert abs(m_N.double().mean().item() - p) <= 4 * (p * (1 - p) / len(INDICES)) ** 0.5


@pytest.mark.parametrize("beta", [0.5, 1.0, 3.0])
def test_beta_has_its_distribution(device: str, beta: float) -> None:
    m_N = mixing_weights("beta", INDICES.to(device), Stream(0, "mixing"), beta=beta).cpu()
    assert m_N.dtype == torch.float32
    assert m_N.min() >= 0
    assert m_N.max() <= 1
    assert stats.kstest(m_N.numpy(), stats.beta(beta, beta).cdf).pvalue > 0.01


@pytest.mark.parametrize("kind", ["bernoulli", "beta"])
def test_a_draw_depends_on_the_image_and_its_stream_only(device: str, kind: str) -> None:
    def draw(indices: torch.Tensor, epoch: int = 0) -> torch.Tensor:
        return mixing_weights(kind, indices.to(device), Stream(0, "mixing", epoch), p=0.5, beta=0.5).cpu()

    picked = torch.tensor([700, 3, 3, 19_999])
    assert torch.equal(draw(picked), draw(INDICES)[picked])
    assert (draw(INDICES, epoch=1) == draw(INDICES)).float().mean() < 0.52


def test_wrong_values() -> None:
    stream = Stream(0, "mixing")
    with pytest.raises(InputError, match="unknown mixing 'bernouli'; did you mean 'bernoulli'"):
        mixing_weights("bernouli", INDICES, stream)
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=f"p is {p}.*between 0 and 1"):
            mixing_weights("bernoulli", INDICES, stream, p=p)
    for beta in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match=f"beta is {beta}.*more than 0"):
            mixing_weights("beta", INDICES, stream, beta=beta)
