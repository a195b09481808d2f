"""What AugMix draws for each image: the distributions, and that a draw depends on the image alone."""

import pytest
import torch
from scipy import stats
from torch import Tensor

from counterpoint.augment.augmix_plan import (
    ALL_OPERATIONS,
    EXTRA_OPERATIONS,
    OPERATIONS,
    AugMixPlan,
    concatenate,
    mixing_weights,
    sample_augmix,
)
from counterpoint.errors import InputError
from counterpoint.seeding import Stream

STREAM = Stream(0, "augmix")
INDICES = torch.arange(20_000)


@pytest.fixture(scope="module")
def plan() -> AugMixPlan:
    return sample_augmix(torch.arange(20_000), 3, STREAM, p=0.875)


def test_operations_are_chosen_evenly_at_every_place(plan: AugMixPlan) -> None:
    for place in range(3):
        chosen = plan.operations_NWD[:, :, place]
        counts = torch.bincount(chosen[chosen >= 0].long())
        assert [ALL_OPERATIONS[i] for i in range(len(counts))] == list(OPERATIONS)
        assert stats.chisquare(counts.numpy()).pvalue > 0.01


def test_chains_are_one_to_three_long(plan: AugMixPlan) -> None:
    lengths_NW = (plan.operations_NWD >= 0).sum(2)
    assert torch.equal(plan.operations_NWD >= 0, torch.arange(3) < lengths_NW[..., None])
    for chain in range(3):
        counts = torch.bincount(lengths_NW[:, chain])
        assert counts[0] == 0
        assert stats.chisquare(counts[1:].numpy()).pvalue > 0.01


def test_levels_are_uniform_up_to_the_severity_with_either_sign(plan: AugMixPlan) -> None:
    for levels_N in plan.levels_NWD.flatten(1).T:
        assert stats.kstest(levels_N.abs().numpy(), stats.uniform(0.1, 2.9).cdf).pvalue > 0.01
        assert abs((levels_N > 0).double().mean() - 0.5) < 4 * 0.5 / 20_000**0.5


def test_weights_are_dirichlet(plan: AugMixPlan) -> None:
    weights_NW = plan.weights_NW.double()
    assert (weights_NW.sum(1) - 1).abs().max() < 1e-6
    expected = torch.full((3, 3), -1 / 36, dtype=torch.float64).fill_diagonal_(2 / 36)
    assert (torch.cov(weights_NW.T) - expected).abs().max() < 0.001
    for weight_N in weights_NW.T:
        assert stats.kstest(weight_N.numpy(), stats.beta(1, 2).cdf).pvalue > 0.01


def test_draws_are_independent_of_each_other(plan: AugMixPlan) -> None:
    columns = [t.double().flatten(1) for t in (plan.operations_NWD[:, :, :1], plan.levels_NWD, plan.levels_NWD.abs())]
    columns += [(plan.operations_NWD >= 0).double().sum(2), plan.weights_NW[:, :2].double(), plan.m_N.double()[:, None]]
    correlation = torch.corrcoef(torch.cat(columns, dim=1).T).fill_diagonal_(0)
    between_weights = correlation[-3, -2].item()
    correlation[-3, -2] = correlation[-2, -3] = 0
    assert between_weights == pytest.approx(-0.5, abs=0.03)
    assert correlation.abs().max() < 4.5 / 20_000**0.5


def test_m_says_which_share_is_augmented(plan: AugMixPlan) -> None:
    assert abs(plan.m_N.double().mean() - 0.875) < 4 * (0.875 * 0.125 / 20_000) ** 0.5
    beta = sample_augmix(torch.arange(20_000), 3, STREAM, mixing="beta")
    assert stats.kstest(beta.m_N.numpy(), stats.uniform().cdf).pvalue > 0.01


def assert_same(first: AugMixPlan, second: AugMixPlan) -> None:
    for a, b in zip(first.tensors, second.tensors, strict=True):
        assert torch.equal(a, b)


def test_a_plan_depends_on_the_image_not_on_the_batch(plan: AugMixPlan) -> None:
    picked = torch.tensor([19_999, 4, 4, 1234])
    assert_same(sample_augmix(picked, 3, STREAM, p=0.875), plan[picked])
    severity_N = torch.tensor([3.0, 1.0, 0.5, 3.0])
    mixed = sample_augmix(picked, severity_N, STREAM, p=0.875)
    assert_same(mixed[1:2], sample_augmix(picked[1:2], 1, STREAM, p=0.875))


def test_parts_joined_are_the_whole(plan: AugMixPlan) -> None:
    assert_same(concatenate([plan[:7], plan[7:9], plan[9:]]), plan)
    assert len(plan[7:9]) == 2


def test_a_plan_knows_whether_it_may_have_extra_operations(plan: AugMixPlan) -> None:
    """Wherever a plan comes from. One made by hand may have any."""
    with_extras = sample_augmix(torch.arange(3), 3, STREAM, operations=["rotate", "colour"])
    assert not any(one.may_have_extras for one in (plan, plan[:7], plan.to("cpu"), concatenate([plan, plan])))
    assert all(one.may_have_extras for one in (with_extras[:1], with_extras.to("cpu"), AugMixPlan(*plan.tensors)))
    assert concatenate([plan, with_extras]).may_have_extras


@pytest.mark.parametrize("other", [Stream(1, "augmix"), Stream(0, "augmix", 1), Stream(0, "augmix", 0, 1)], ids=str)
def test_epochs_members_and_seeds_differ(plan: AugMixPlan, other: Stream) -> None:
    changed = sample_augmix(torch.arange(1000), 3, other)
    assert (changed.levels_NWD == plan.levels_NWD[:1000]).sum() == 0


def test_the_extra_operations_are_off_unless_asked_for() -> None:
    assert OPERATIONS + EXTRA_OPERATIONS == ALL_OPERATIONS
    only = sample_augmix(torch.arange(100), 3, STREAM, operations=["colour", "rotate"])
    assert {ALL_OPERATIONS[i] for i in only.operations_NWD.unique().tolist() if i >= 0} == {"colour", "rotate"}


@pytest.mark.parametrize("severity", [-1.0, 0.05, 10.5, float("nan"), torch.tensor([3.0, -1.0])], ids=str)
def test_wrong_severity(severity: float | Tensor) -> None:
    with pytest.raises(InputError, match=r"severity is .*between 0\.1 and 10, or 0 for a clean image"):
        sample_augmix(torch.arange(2), severity, STREAM)


def test_wrong_arguments_of_a_plan() -> None:
    indices_N = torch.arange(4)
    with pytest.raises(InputError, match=r"severity \(3,\).*a number or \(N,\)"):
        sample_augmix(indices_N, torch.ones(3), STREAM)
    with pytest.raises(InputError, match=r"indices have shape \(2, 2\)"):
        sample_augmix(indices_N.view(2, 2), 3, STREAM)
    with pytest.raises(InputError, match="unknown operation 'rotat'; did you mean 'rotate'"):
        sample_augmix(indices_N, 3, STREAM, operations=["rotat"])
    with pytest.raises(InputError, match="operations is empty"):
        sample_augmix(indices_N, 3, STREAM, operations=[])
    with pytest.raises(InputError, match="width is 0"):
        sample_augmix(indices_N, 3, STREAM, width=0)
    with pytest.raises(InputError, match="p is 2"):
        sample_augmix(indices_N, 3, STREAM, p=2)
    with pytest.raises(InputError, match="beta is 0"):
        sample_augmix(indices_N, 3, STREAM, mixing="beta", beta=0)
    with pytest.raises(InputError, match="unknown mixing 'uniform'"):
        sample_augmix(indices_N, 3, STREAM, mixing="uniform")


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


def test_wrong_mixing() -> None:
    stream = Stream(0, "mixing")
    with pytest.raises(InputError, match="unknown mixing 'bernouli'; did you mean 'bernoulli'"):
        mixing_weights("bernouli", INDICES, stream)
    for p in (-0.1, 1.1, float("nan")):
        with pytest.raises(InputError, match=f"p is {p}.*between 0 and 1"):
            mixing_weights("bernoulli", INDICES, stream, p=p)
    for beta in (0.0, -1.0, float("nan")):
        with pytest.raises(InputError, match=f"beta is {beta}.*more than 0"):
            mixing_weights("beta", INDICES, stream, beta=beta)


def test_a_plan_is_shown_in_a_line() -> None:
    plan = sample_augmix(torch.arange(4), 3, STREAM, width=2)
    assert repr(plan) == "AugMixPlan(4 images, 2 chains of at most 3 operations, on cpu)"
