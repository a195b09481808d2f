from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from scipy import stats
from torch import Tensor

from counterpoint.augment.augmix import apply_augmix, run_chains
from counterpoint.augment.augmix_plan import (
    ALL_OPERATIONS,
    EXTRA_OPERATIONS,
    OPERATIONS,
    AugMixPlan,
    concatenate,
    sample_augmix,
)
from counterpoint.errors import InputError
from counterpoint.seeding import Stream

STREAM = Stream(0, "augmix")
AFFINE, BILINEAR = Image.Transform.AFFINE, Image.Resampling.BILINEAR


def transform(image: Image.Image, *matrix: float) -> Image.Image:
    return image.transform(image.size, AFFINE, matrix, BILINEAR)


# AugMix's operations as the AugMix code defines them (docs/paper.md, 6), of a Pillow image, a level and a sign.
TWIN: dict[str, Callable[[Image.Image, float, int], Image.Image]] = {
    "autocontrast": lambda image, *_: ImageOps.autocontrast(image),
    "equalize": lambda image, *_: ImageOps.equalize(image),
    "posterize": lambda image, level, _: ImageOps.posterize(image, 4 - int(level * 4 / 10)),
    "rotate": lambda image, level, sign: image.rotate(sign * int(level * 30 / 10), BILINEAR),
    "solarize": lambda image, level, _: ImageOps.solarize(image, 256 - int(level * 256 / 10)),
    "shear_x": lambda image, level, sign: transform(image, 1, sign * level * 0.3 / 10, 0, 0, 1, 0),
    "shear_y": lambda image, level, sign: transform(image, 1, 0, 0, sign * level * 0.3 / 10, 1, 0),
    "translate_x": lambda image, level, sign: transform(
        image, 1, 0, sign * int(level * (image.width / 3) / 10), 0, 1, 0
    ),
    "translate_y": lambda image, level, sign: transform(
        image, 1, 0, 0, 0, 1, sign * int(level * (image.height / 3) / 10)
    ),
    "colour": lambda image, level, _: ImageEnhance.Color(image).enhance(level * 1.8 / 10 + 0.1),
    "contrast": lambda image, level, _: ImageEnhance.Contrast(image).enhance(level * 1.8 / 10 + 0.1),
    "brightness": lambda image, level, _: ImageEnhance.Brightness(image).enhance(level * 1.8 / 10 + 0.1),
    "sharpness": lambda image, level, _: ImageEnhance.Sharpness(image).enhance(level * 1.8 / 10 + 0.1),
}


def twin_chain(image_CHW: Tensor, operations_D: list[int], levels_D: list[float]) -> Tensor:
    image = Image.fromarray(image_CHW.permute(1, 2, 0).squeeze(2).numpy())
    for operation, level in zip(operations_D, levels_D, strict=True):
        if operation < 0:
            break
        image = TWIN[ALL_OPERATIONS[operation]](image, abs(level), 1 if level > 0 else -1)
    return torch.from_numpy(np.array(image)).view(*image_CHW.shape[1:], -1).permute(2, 0, 1)


def twin_chains(images_NCHW: Tensor, plan: AugMixPlan) -> Tensor:
    """The chains of every image one by one, through Pillow."""
    chains = [
        torch.stack([twin_chain(image, *chain) for chain in zip(operations_WD, levels_WD, strict=True)])
        for image, operations_WD, levels_WD in zip(
            images_NCHW, plan.operations_NWD.tolist(), plan.levels_NWD.tolist(), strict=True
        )
    ]
    return torch.stack(chains)


def random_images(count: int, *size: int) -> Tensor:
    """Smooth noise with a range of its own in each channel, so that no operation does nothing."""
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(count, *size, generator=generator).cumsum(2).cumsum(3)
    noise = noise - noise.amin((2, 3), keepdim=True)
    ceiling = torch.randint(60, 256, (count, size[0], 1, 1), generator=generator)
    return (noise / noise.amax((2, 3), keepdim=True) * ceiling).to(torch.uint8)


def assert_equal_to_twin(device: str, images_NCHW: Tensor, plan: AugMixPlan) -> None:
    chains_NWCHW = twin_chains(images_NCHW, plan)
    used_N = plan.m_N > 0
    assert torch.equal(run_chains(images_NCHW.to(device), plan.to(device)).cpu()[used_N], chains_NWCHW[used_N])

    weights_NW111, m_N111 = plan.weights_NW.double()[:, :, None, None, None], plan.m_N.double()[:, None, None, None]
    mixture_NCHW = (weights_NW111 * (chains_NWCHW / 255)).sum(1)
    expected = (1 - m_N111) * (images_NCHW / 255) + m_N111 * mixture_NCHW
    views_NCHW = apply_augmix(images_NCHW.to(device), plan.to(device)).cpu()
    assert views_NCHW.dtype == torch.float32
    assert (views_NCHW - expected).abs().max() < 1e-6


@pytest.mark.parametrize("severity", [0.1, 1.0, 3.0, 10.0])
@pytest.mark.parametrize("size", [(3, 32, 32), (1, 20, 28), (3, 1, 5)], ids=str)
def test_equal_to_augmix_in_pillow(device: str, size: tuple[int, ...], severity: float) -> None:
    plan = sample_augmix(torch.arange(120), severity, STREAM, p=0.8, operations=ALL_OPERATIONS)
    assert_equal_to_twin(device, random_images(120, *size), plan)


def test_equal_to_augmix_in_pillow_with_beta_and_other_widths(device: str) -> None:
    severity_N = torch.linspace(0.1, 10, 80)
    plan = sample_augmix(torch.arange(80), severity_N, STREAM, mixing="beta", beta=0.4, width=2, depth=5)
    assert plan.operations_NWD.shape == (80, 2, 5)
    assert_equal_to_twin(device, random_images(80, 3, 32, 32), plan)


def test_equal_to_augmix_in_pillow_on_real_images(device: str, cifar_images: Tensor) -> None:
    assert_equal_to_twin(device, cifar_images, sample_augmix(torch.arange(len(cifar_images)), 3, STREAM))


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


@pytest.mark.parametrize("stream", [Stream(1, "augmix"), Stream(0, "augmix", 1), Stream(0, "augmix", 0, 1)], ids=str)
def test_epochs_members_and_seeds_differ(plan: AugMixPlan, stream: Stream) -> None:
    changed = sample_augmix(torch.arange(1000), 3, stream)
    assert (changed.levels_NWD == plan.levels_NWD[:1000]).sum() == 0


def test_views_do_not_depend_on_the_batch(device: str) -> None:
    """1,500 images are more than are worked on at once on a CPU."""
    images_NCHW = random_images(1500, 3, 32, 32).to(device)
    plan = sample_augmix(torch.arange(1500, device=device), 3, STREAM, mixing="beta")
    whole = apply_augmix(images_NCHW, plan)
    for start, stop in ((0, 1), (100, 340), (1300, 1500)):
        assert torch.equal(apply_augmix(images_NCHW[start:stop], plan[start:stop]), whole[start:stop])
    backwards = torch.arange(1499, -1, -1, device=device)
    assert torch.equal(apply_augmix(images_NCHW[backwards], plan[backwards]), whole[backwards])


def test_views_of_clean_and_of_white_images(device: str) -> None:
    images_NCHW = random_images(300, 3, 16, 16).to(device)
    indices_N = torch.arange(300, device=device)
    for clean in (sample_augmix(indices_N, 3, STREAM, p=0), sample_augmix(indices_N, 0, STREAM, p=1)):
        # On the CPU, since CUDA divides by a number through its reciprocal.
        assert torch.equal(apply_augmix(images_NCHW, clean).cpu(), images_NCHW.cpu().float() / 255)
    white = torch.full_like(images_NCHW, 255)
    views = apply_augmix(white, sample_augmix(indices_N, 3, STREAM, p=1, operations=["autocontrast"]))
    assert views.max() <= 1
    assert views.min() > 1 - 1e-6


def test_no_images(device: str) -> None:
    plan = sample_augmix(torch.arange(0, device=device), 3, STREAM)
    assert apply_augmix(torch.zeros(0, 3, 8, 8, dtype=torch.uint8, device=device), plan).shape == (0, 3, 8, 8)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_cpu_and_gpu_agree() -> None:
    images_NCHW = random_images(4000, 3, 32, 32)
    for mixing in ("bernoulli", "beta"):
        on_cpu, on_gpu = (
            sample_augmix(torch.arange(4000, device=d), 3, STREAM, mixing=mixing, beta=0.5) for d in ("cpu", "cuda")
        )
        back = on_gpu.to("cpu")
        assert torch.equal(back.operations_NWD, on_cpu.operations_NWD)
        assert torch.equal(back.levels_NWD, on_cpu.levels_NWD)
        assert torch.equal(back.m_N, on_cpu.m_N)
        assert (back.weights_NW - on_cpu.weights_NW).abs().max() < 1e-6
        assert torch.equal(run_chains(images_NCHW.cuda(), on_gpu).cpu(), run_chains(images_NCHW, on_cpu))
        views = apply_augmix(images_NCHW, on_cpu)
        assert torch.equal(apply_augmix(images_NCHW.cuda(), on_cpu.to("cuda")).cpu(), views)
        assert (apply_augmix(images_NCHW.cuda(), on_gpu).cpu() - views).abs().max() < 1e-6


def test_the_extra_operations_are_off_unless_asked_for() -> None:
    assert OPERATIONS + EXTRA_OPERATIONS == ALL_OPERATIONS
    assert set(TWIN) == set(ALL_OPERATIONS)
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
    with pytest.raises(InputError, match="width is 0 and depth is 3"):
        sample_augmix(indices_N, 3, STREAM, width=0)
    with pytest.raises(InputError, match="p is 2"):
        sample_augmix(indices_N, 3, STREAM, p=2)
    with pytest.raises(InputError, match="beta is 0"):
        sample_augmix(indices_N, 3, STREAM, mixing="beta", beta=0)
    with pytest.raises(InputError, match="unknown mixing 'uniform'"):
        sample_augmix(indices_N, 3, STREAM, mixing="uniform")


def test_wrong_images() -> None:
    images_NCHW, plan = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), sample_augmix(torch.arange(4), 3, STREAM)
    with pytest.raises(InputError, match=r"torch\.float32.*must be torch\.uint8"):
        apply_augmix(images_NCHW.float(), plan)
    with pytest.raises(InputError, match=r"\(3, 8, 8\).*\(N, C, H, W\)"):
        apply_augmix(images_NCHW[0], plan)
    with pytest.raises(InputError, match="plan is for 4 images and there are 3"):
        apply_augmix(images_NCHW[:3], plan)
    with pytest.raises(InputError, match=r"plan is on meta.*plan\.to"):
        apply_augmix(images_NCHW, plan.to("meta"))
