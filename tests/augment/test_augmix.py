from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor

from counterpoint.augment.augmix import apply_augmix, jensen_shannon, run_chains
from counterpoint.augment.augmix_plan import (
    ALL_OPERATIONS,
    AugMixPlan,
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


def test_every_operation_has_its_twin() -> None:
    assert set(TWIN) == set(ALL_OPERATIONS)


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


def test_wrong_images() -> None:
    images_NCHW, plan = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), sample_augmix(torch.arange(4), 3, STREAM)
    with pytest.raises(InputError, match=r"torch\.float32.*must be torch\.uint8"):
        apply_augmix(images_NCHW.float(), plan)
    with pytest.raises(InputError, match=r"\(3, 8, 8\).*\(N, C, H, W\)"):
        apply_augmix(images_NCHW[0], plan)
    with pytest.raises(InputError, match="plan is for 4 images but there are 3"):
        apply_augmix(images_NCHW[:3], plan)
    with pytest.raises(InputError, match=r"plan is on meta.*plan\.to"):
        apply_augmix(images_NCHW, plan.to("meta"))


def divergence(probs_VK: np.ndarray) -> float:
    mixture = probs_VK.mean(axis=0)
    return float(np.mean([np.sum(p * np.log(p / mixture)) for p in probs_VK]))


def test_the_divergence_is_that_of_the_augmix_paper() -> None:
    logits_VNK = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    expected = [divergence(logits_VNK[:, n].softmax(dim=-1).numpy()) for n in range(5)]
    assert float(jensen_shannon(logits_VNK)) == pytest.approx(np.mean(expected), rel=1e-12)


def test_the_divergence_has_its_bounds() -> None:
    same = torch.randn(1, 5, 4).expand(3, 5, 4)
    assert float(jensen_shannon(same)) == pytest.approx(0, abs=1e-6)
    certain_of_different_classes = 1000 * torch.eye(3)[:, None, :]
    assert float(jensen_shannon(certain_of_different_classes)) == pytest.approx(np.log(3), rel=1e-6)
