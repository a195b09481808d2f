from dataclasses import replace

import pytest
import torch
from torch import Tensor

from counterpoint.augment import apply_augmix, make_views, sample_augmix
from counterpoint.augment.resized_crop import resize_boxes, sample_box
from counterpoint.augment.standard import apply_crop, sample_crop, to_unit
from counterpoint.augment.views import Views, assign, branch_factors, sample_views
from counterpoint.errors import InputError
from counterpoint.normalisation import NORMALISATION, Normalisation
from counterpoint.policy import Adversarial, Assignment, AugMix, MemberPolicy, StochasticDepth
from counterpoint.seeding import Stream

DIVERSE = MemberPolicy(augmix=AugMix((0.0, 1.0, 4.0)))


def images(count: int = 12) -> Tensor:
    return torch.randint(0, 256, (count, 3, 16, 16), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def test_each_member_sees_augmix_of_its_severity_after_the_shared_crop() -> None:
    numbers = torch.arange(100, 112)
    views = make_views(images(), DIVERSE, num_members=3, indices_B=numbers, seed=5, epoch=2)
    cropped = apply_crop(images(), sample_crop(numbers, Stream(5, "crop", 2), flip=True, padding=4))
    assert torch.equal(views[0], NORMALISATION.apply(to_unit(cropped)))
    for member, severity in ((1, 1.0), (2, 4.0)):
        plan = sample_augmix(numbers, severity, Stream(5, "augmix", 2, member), p=0.875)
        assert torch.equal(views[member], NORMALISATION.apply(apply_augmix(cropped, plan)))


def test_a_scale_takes_the_place_of_the_padded_crop() -> None:
    numbers = torch.arange(100, 112)
    policy = MemberPolicy(crop_scale=(0.2, 0.8), crop_per_view=True)
    views = make_views(images(), policy, num_members=2, indices_B=numbers, seed=5, epoch=2)
    for member in range(2):
        plan = sample_box(numbers, Stream(5, "crop", 2, member), flip=True, scale=(0.2, 0.8), size=(16, 16))
        assert torch.equal(views[member], NORMALISATION.apply(to_unit(resize_boxes(images(), plan))))
    shared = make_views(
        images(), replace(policy, crop_per_view=False), num_members=2, indices_B=numbers, seed=5, epoch=2
    )
    assert torch.equal(shared, views[:1].expand_as(shared))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
@pytest.mark.parametrize("assignment", ["diverse", "shuffled"])
@pytest.mark.parametrize("scale", [None, (0.2, 0.8)], ids=str)
def test_python_does_not_wait_for_a_gpu(scale: tuple[float, float] | None, assignment: Assignment) -> None:
    policy = MemberPolicy(
        crop_scale=scale,
        augmix=AugMix((0.0, 1.0, 4.0), assignment),
        adversarial=Adversarial((0.0, 0.1, 0.2)),
        stochastic_depth=StochasticDepth((0.0, 0.1, 0.2)),
    )
    on_gpu, numbers = images().cuda(), torch.arange(12, device="cuda")
    common = {"num_members": 3, "indices_B": numbers, "steps_B": numbers, "seed": 0, "epoch": 0, "num_blocks": 2}
    first = sample_views(on_gpu, policy, **common)  # type: ignore[arg-type]
    torch.cuda.set_sync_debug_mode("error")
    try:
        again = sample_views(on_gpu, policy, **common)  # type: ignore[arg-type]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    for one, other in zip(first.tensors, again.tensors, strict=True):
        assert torch.equal(one, other)


def test_an_images_views_do_not_depend_on_its_batch() -> None:
    numbers = torch.arange(12)
    whole = make_views(images(), DIVERSE, num_members=3, indices_B=numbers)
    for row in (0, 7):
        alone = make_views(images()[row : row + 1], DIVERSE, num_members=3, indices_B=numbers[row : row + 1])
        assert torch.equal(alone[:, 0], whole[:, row])
    assert torch.equal(make_views(images(), DIVERSE, num_members=3), whole)


def test_another_normalisation_is_that_of_every_view() -> None:
    policy = MemberPolicy(augmix=AugMix((1.0, 4.0), jsd=12.0))
    numbers, other = torch.arange(6), Normalisation((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))

    def sampled(normalisation: Normalisation) -> Views:
        common = {"num_members": 2, "indices_B": numbers, "steps_B": 0 * numbers, "seed": 1, "epoch": 2}
        return sample_views(images(6), policy, **common, normalisation=normalisation)  # type: ignore[arg-type]

    ours, theirs = sampled(NORMALISATION), sampled(other)
    assert (
        theirs.normalisation == theirs.select(slice(2)).normalisation == theirs.map(torch.clone).normalisation == other
    )
    for our, their in zip(ours.tensors, theirs.tensors, strict=True):
        torch.testing.assert_close(other.undo(their), NORMALISATION.undo(our), rtol=0, atol=1e-6)
        assert not torch.equal(their, our)
    made = make_views(images(6), policy, num_members=2, seed=1, epoch=2, normalisation=other)
    assert torch.equal(made, theirs.views_MBCHW)
    with pytest.raises(InputError, match="is for 2 channels, and the images have 3"):
        make_views(images(6), policy, num_members=2, normalisation=Normalisation((0.1, 0.2), (0.4, 0.5)))


def test_crops_are_shared_unless_asked_for_each_view() -> None:
    shared = make_views(images(), MemberPolicy(), num_members=3)
    separate = make_views(images(), MemberPolicy(crop_per_view=True), num_members=3)
    assert torch.equal(shared[0], shared[1])
    assert torch.equal(separate[0], shared[0])
    assert not torch.equal(separate[1], separate[0])
    assert not torch.equal(separate[2], separate[1])


def test_a_member_with_a_consistency_loss_sees_its_clean_view_and_two_augmix_views() -> None:
    consistent = MemberPolicy(augmix=AugMix((1.0, 4.0), jsd=12.0))
    numbers = torch.arange(6)

    def sampled(policy: MemberPolicy) -> Views:
        return sample_views(
            images(6), policy, num_members=2, indices_B=numbers, steps_B=0 * numbers, seed=1, epoch=2, num_blocks=3
        )

    with_jsd, without = sampled(consistent), sampled(MemberPolicy(augmix=AugMix((1.0, 4.0))))
    assert without.companions_2MBCHW is None
    assert with_jsd.companions_2MBCHW is not None
    assert torch.equal(with_jsd.views_MBCHW, without.views_MBCHW)
    clean, second = with_jsd.companions_2MBCHW
    assert torch.equal(clean, sampled(MemberPolicy()).views_MBCHW)
    assert (second != with_jsd.views_MBCHW).flatten(2).any(dim=2).float().mean() > 0.5
    assert (second != clean).flatten(2).any(dim=2).float().mean() > 0.5
    assert torch.equal(make_views(images(6), consistent, num_members=2, seed=1, epoch=2), without.views_MBCHW)


class TestAssignment:
    steps = torch.arange(600) // 3

    def test_diverse_gives_entry_i_to_member_i(self) -> None:
        assert assign((1.0, 2.0, 3.0), "diverse", 3, self.steps, Stream(0, "x"))[:, 17].tolist() == [1, 2, 3]

    def test_constant_gives_its_entry_to_all(self) -> None:
        assert (assign((3.0,), "constant", 4, self.steps, Stream(0, "x")) == 3).all()

    def test_shuffled_permutes_the_vector_before_each_update(self) -> None:
        severity_MB = assign((1.0, 2.0, 3.0), "shuffled", 3, self.steps, Stream(0, "x"))
        assert severity_MB.shape == (3, 600)
        assert torch.equal(severity_MB[:, 0::3], severity_MB[:, 2::3]), "one permutation per step"
        assert torch.equal(severity_MB.sort(dim=0).values, torch.tensor([[1.0], [2.0], [3.0]]).expand(3, 600).double())
        orders, counts = severity_MB[:, ::3].T.unique(dim=0, return_counts=True)
        assert len(orders) == 6
        assert counts.min() > 15, "all six orders are about as frequent"

    def test_shuffles_of_two_augmentations_are_independent(self) -> None:
        policy = MemberPolicy(
            adversarial=Adversarial((0.1, 0.2, 0.3), "shuffled", p=1.0),
            stochastic_depth=StochasticDepth((0.1, 0.2, 0.3), "shuffled"),
        )
        rates = assign((0.1, 0.2, 0.3), "shuffled", 3, self.steps, Stream(0, "shuffle stochastic depth"))
        severities = assign((0.1, 0.2, 0.3), "shuffled", 3, self.steps, Stream(0, "shuffle adversarial"))
        assert 0.1 < (rates == severities).all(dim=0).double().mean() < 0.25
        views = sample_views(
            images(600),
            policy,
            num_members=3,
            indices_B=torch.arange(600),
            steps_B=self.steps,
            seed=0,
            epoch=0,
            num_blocks=2,
        )
        assert views.amount_MB is not None
        assert (views.amount_MB <= severities).all()
        assert views.keep_LMB is not None
        kept = views.keep_LMB[views.keep_LMB > 0]
        expected = (1 / (1 - rates)).float().expand(2, 3, 600)[views.keep_LMB > 0]
        torch.testing.assert_close(kept, expected)

    def test_a_kept_branch_is_as_it_is_without_rescaling(self) -> None:
        policy = MemberPolicy(stochastic_depth=StochasticDepth((0.5,), "constant", rescale=False))
        numbers = torch.arange(20)
        views = sample_views(
            images(20), policy, num_members=1, indices_B=numbers, steps_B=numbers, seed=0, epoch=0, num_blocks=2
        )
        assert views.keep_LMB is not None
        assert views.keep_LMB.unique().tolist() == [0.0, 1.0]


def test_wrong_values_are_named() -> None:
    with pytest.raises(InputError, match=r"augmix severity has 3 entries .* 'diverse' needs one for each of 4 members"):
        make_views(images(), DIVERSE, num_members=4)
    with pytest.raises(InputError, match=r"images are torch.float32"):
        make_views(images().float(), replace(DIVERSE), num_members=3)


@pytest.mark.parametrize("shape", [(8, 32, 32, 3), (3, 32, 32)])
def test_images_of_another_shape_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(InputError, match=r"images have shape .*; they must be \(B, C, H, W\) with C 1 or 3"):
        make_views(torch.zeros(shape, dtype=torch.uint8), MemberPolicy(), num_members=2)


def test_some_images_are_cut_out_of_every_field() -> None:
    """Each field counts its images along the axis that its name calls B."""
    shapes = {"views_MBCHW": (2, 5, 3, 4, 4), "amount_MB": (2, 5), "keep_LMB": (3, 2, 5)}
    shapes["companions_2MBCHW"] = (2, 2, 5, 3, 4, 4)
    assert shapes.keys() == Views.__dataclass_fields__.keys() - {"normalisation"}
    whole = Views(**{name: torch.rand(shape) for name, shape in shapes.items()})  # type: ignore[arg-type]
    cut = whole.select(slice(1, 3))
    assert torch.equal(cut.views_MBCHW, whole.views_MBCHW[:, 1:3])
    for name in ("amount_MB", "keep_LMB", "companions_2MBCHW"):
        axis = name.rpartition("_")[2].index("B")
        assert torch.equal(getattr(cut, name), getattr(whole, name).narrow(axis, 1, 2)), name


def test_factors_drop_at_the_members_rate_and_keep_the_mean() -> None:
    uniform = torch.rand(3, 2, 100_000, generator=torch.Generator().manual_seed(0))
    factors = branch_factors(uniform, torch.tensor([[0.0], [0.25]]))
    assert (factors[:, 0] == 1).all()
    assert factors[:, 1].unique().tolist() == [0.0, pytest.approx(4 / 3)]
    assert abs((factors[:, 1] == 0).float().mean() - 0.25) < 0.005
    assert abs(factors[:, 1].mean() - 1) < 0.01
    unscaled = branch_factors(uniform, torch.tensor([[0.0], [0.25]]), rescale=False)
    assert torch.equal(unscaled, (factors > 0).float())
