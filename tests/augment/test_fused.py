"""The kernel on a GPU or under Triton's interpreter, against `views_by_groups` on a CPU: the same bits."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

pytest.importorskip("triton")

from counterpoint.augment.augmix import apply_augmix, views_by_groups
from counterpoint.augment.augmix_plan import ALL_OPERATIONS, OPERATIONS, AugMixPlan, sample_augmix
from counterpoint.augment.fused import fused_views
from counterpoint.seeding import Stream

ON_GPU = torch.cuda.is_available()
DEVICE = "cuda" if ON_GPU else "cpu"
STREAM = Stream(0, "fused")
MANY = 40 if ON_GPU else 1  # times as many images as an interpreter has time for


def random_images(count: int, *size: int) -> Tensor:
    """Noise with a range of its own in each channel; the first images have one value everywhere, or two."""
    generator = torch.Generator().manual_seed(0)
    low, high = torch.randint(0, 256, (2, count, size[0], 1, 1), generator=generator).sort(dim=0).values
    images = low + (torch.rand(count, *size, generator=generator) * (high - low + 1)).long()
    images[0], images[1] = 255, 7
    images[2] = torch.where(images[2] > images[2].amin((1, 2), keepdim=True), 255, 0)
    return images.to(torch.uint8)


def assert_same_bits(images_NCHW: Tensor, plan: AugMixPlan) -> None:
    found = fused_views(images_NCHW.to(DEVICE), plan.to(DEVICE)).cpu()
    assert torch.equal(found, views_by_groups(images_NCHW, plan))


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("size", [(3, 32, 32), (1, 13, 28), (3, 1, 5)], ids=str)
def test_each_operation(operation: str, size: tuple[int, ...]) -> None:
    """32×32 images are whole tiles of pixels, the others are not."""
    count = 4 * MANY
    severity_N = torch.linspace(0.1, 10, count)
    plan = sample_augmix(torch.arange(count), severity_N, STREAM, p=1, operations=[operation])
    assert_same_bits(random_images(count, *size), plan)


@pytest.mark.parametrize("mixing", ["bernoulli", "beta"])
@pytest.mark.parametrize(("count", "size"), [(12, (3, 32, 32)), (20, (4, 5, 5)), (3, (3, 67, 66))], ids=str)
def test_chains_of_all_operations(mixing: str, count: int, size: tuple[int, ...]) -> None:
    """Images of more than 64×64 pixels have a program for each chain."""
    plan = sample_augmix(torch.arange(count * MANY), 10, STREAM, mixing=mixing, p=0.7)
    assert_same_bits(random_images(count * MANY, *size), plan)


@pytest.mark.skipif(not ON_GPU, reason="takes an interpreter minutes")
@pytest.mark.parametrize("size", [(3, 224, 224), (1, 301, 199)], ids=str)
def test_photographs(size: tuple[int, ...]) -> None:
    severity_N = torch.linspace(0.1, 10, 64)
    plan = sample_augmix(torch.arange(64), severity_N, STREAM, mixing="beta", width=4)
    assert_same_bits(random_images(64, *size), plan)


@pytest.mark.parametrize("operation", ["shear_x", "shear_y"])
def test_results_near_whole_numbers_and_at_the_edge(operation: str) -> None:
    """Shears by 0.1, 0.2 and 0.3 of values that are multiples of 10: nearly every result is a whole number but for the
    rounding of doubles, and some pixels are taken from exactly the image's edge."""
    levels_N = torch.tensor([10 / 3, 20 / 3, 10.0], dtype=torch.float64)
    levels_N = torch.cat([levels_N, -levels_N]).repeat(MANY)
    generator = torch.Generator().manual_seed(1)
    images_NCHW = torch.randint(0, 26, (len(levels_N), 3, 8, 8), generator=generator).mul(10).to(torch.uint8)
    plan = AugMixPlan(
        torch.full((len(levels_N), 1, 1), OPERATIONS.index(operation), dtype=torch.int8),
        levels_N[:, None, None],
        torch.ones(len(levels_N), 1),
        torch.ones(len(levels_N)),
    )
    assert_same_bits(images_NCHW, plan)


def test_empty_chains_and_idle_places() -> None:
    """Sampled chains have an operation and end once; the views are right without that too."""
    plan = sample_augmix(torch.arange(8), 3, STREAM, p=1)
    plan.operations_NWD[:, 0] = -1
    plan.operations_NWD[:, 1, 0] = -1
    plan.operations_NWD[:, 1, 2] = 0
    assert_same_bits(random_images(8, 3, 8, 8), plan)


def test_white_images_stay_white() -> None:
    """The rounded weights of an image may sum to more than 1, its view may not."""
    plan = sample_augmix(torch.arange(60), 3, STREAM, mixing="beta", operations=["autocontrast"])
    views_NCHW = fused_views(torch.full((60, 1, 2, 2), 255, dtype=torch.uint8, device=DEVICE), plan.to(DEVICE))
    assert views_NCHW.max() <= 1
    assert views_NCHW.min() > 1 - 1e-6


def test_other_numbers_of_chains_and_places() -> None:
    count = 8 * MANY
    plan = sample_augmix(torch.arange(count), 4, STREAM, mixing="beta", width=2, depth=6)
    assert_same_bits(random_images(count, 2, 9, 6), plan)


def test_real_images(cifar_images: Tensor) -> None:
    count = 12 * MANY
    assert_same_bits(cifar_images[:count], sample_augmix(torch.arange(count), 3, STREAM))


def test_images_and_plans_that_do_not_lie_together() -> None:
    count = 6 * MANY
    plan = sample_augmix(torch.arange(count), 5, STREAM)
    images_NCHW = random_images(count, 3, 6, 8).transpose(2, 3)
    assert_same_bits(images_NCHW, plan)
    assert_same_bits(images_NCHW[:1].expand(count, 3, 8, 6), plan)
    turned = [tensor.movedim(0, -1).contiguous().movedim(-1, 0) for tensor in plan.tensors]
    assert_same_bits(images_NCHW, AugMixPlan(*turned))


def test_the_kernel_is_for_gpus_and_the_nine_operations(monkeypatch: pytest.MonkeyPatch) -> None:
    ways: list[str] = []

    def noted(name: str) -> Callable[[Tensor, AugMixPlan], Tensor]:
        def make_views(images_NCHW: Tensor, _: AugMixPlan) -> Tensor:
            ways.append(name)
            return images_NCHW / 255

        return make_views

    monkeypatch.setattr("counterpoint.augment.augmix.views_by_groups", noted("groups"))
    monkeypatch.setattr("counterpoint.augment.fused.fused_views", noted("kernel"))
    images_NCHW = random_images(8, 3, 4, 4)
    for device in ("cpu", DEVICE):
        for operations in (OPERATIONS, ALL_OPERATIONS):
            plan = sample_augmix(torch.arange(8, device=device), 3, STREAM, operations=operations)
            apply_augmix(images_NCHW.to(device), plan)
    assert ways == ["groups", "groups", "kernel" if ON_GPU else "groups", "groups"]
