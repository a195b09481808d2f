"""Random resized crop against Pillow and, for the draws, against the rule written as a loop."""

import math

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor

from counterpoint.augment.resized_crop import BoxPlan, resize_boxes, sample_box
from counterpoint.augment.standard import sample_crop
from counterpoint.errors import InputError
from counterpoint.seeding import Stream

STREAM = Stream(0, "crop")


def random_images(count: int, *size: int) -> Tensor:
    return torch.randint(0, 256, (count, *size), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))


def random_boxes(count: int, height: int, width: int) -> BoxPlan:
    """Boxes of all heights and widths anywhere, flipped or not. The first ones are the extremes."""
    generator = torch.Generator().manual_seed(1)
    uniform = torch.rand(5, count, dtype=torch.float64, generator=generator)
    heights, widths = (uniform[0] * height).long() + 1, (uniform[1] * width).long() + 1
    heights[:4], widths[:4] = torch.tensor([1, height, 1, height]), torch.tensor([1, width, width, 1])
    tops, lefts = (uniform[2] * (height - heights + 1)).long(), (uniform[3] * (width - widths + 1)).long()
    return BoxPlan(uniform[4] < 0.5, tops, lefts, heights, widths)


def through_pillow(image_CHW: Tensor, flip: bool, top: int, left: int, height: int, width: int) -> Tensor:
    image = Image.fromarray(image_CHW.permute(1, 2, 0).squeeze(2).numpy())
    resized = image.crop((left, top, left + width, top + height)).resize(image.size, Image.Resampling.BILINEAR)
    turned = resized.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if flip else resized
    return torch.from_numpy(np.array(turned)).view(*image_CHW.shape[1:], -1).permute(2, 0, 1)


def to(plan: BoxPlan, device: str) -> BoxPlan:
    return BoxPlan(*(tensor.to(device) for tensor in plan.tensors))


@pytest.mark.parametrize(
    ("count", "size"),
    [
        (200, (3, 224, 224)),
        (150, (1, 224, 224)),
        (60, (3, 299, 180)),
        (600, (3, 64, 96)),
        (1200, (1, 37, 61)),
        (1200, (3, 8, 8)),
        (100, (3, 1, 7)),
        (100, (1, 7, 1)),
        (10, (3, 1, 1)),
    ],
    ids=str,
)
def test_equal_to_pillow(device: str, count: int, size: tuple[int, int, int]) -> None:
    images_NCHW, plan = random_images(count, *size), random_boxes(count, *size[1:])
    found = resize_boxes(images_NCHW.to(device), to(plan, device)).cpu()
    boxes = zip(*(tensor.tolist() for tensor in plan.tensors), strict=True)
    expected = torch.stack([through_pillow(image, *box) for image, box in zip(images_NCHW, boxes, strict=True)])
    assert found.dtype == torch.uint8
    wrong_N = (found != expected).flatten(1).any(1)
    assert not wrong_N.any(), f"{int(wrong_N.sum())} of {count} differ, the first is {int(wrong_N.int().argmax())}"


def test_the_whole_image_stays_as_it_is(device: str) -> None:
    images_NCHW, zero_N = random_images(5, 3, 30, 20).to(device), torch.zeros(5, dtype=torch.int64, device=device)
    whole = BoxPlan(zero_N.bool(), zero_N, zero_N, zero_N + 30, zero_N + 20)
    assert torch.equal(resize_boxes(images_NCHW, whole), images_NCHW)


def drawn_one_by_one(uniform: list[float], scale: tuple[float, float], height: int, width: int) -> tuple[int, ...]:
    """RandomResizedCrop's rule: ten tries, then the middle with its ratio between 3/4 and 4/3."""
    flip, down, across, *tries = uniform
    for share, tilt in zip(tries[0::2], tries[1::2], strict=True):
        area = height * width * (scale[0] + share * (scale[1] - scale[0]))
        ratio = math.exp(math.log(3 / 4) + tilt * (math.log(4 / 3) - math.log(3 / 4)))
        h, w = round(math.sqrt(area / ratio)), round(math.sqrt(area * ratio))
        if 0 < h <= height and 0 < w <= width:
            return int(flip >= 0.5), int(down * (height - h + 1)), int(across * (width - w + 1)), h, w
    h, w = height, width
    if width / height < 3 / 4:
        h = round(width / (3 / 4))
    elif width / height > 4 / 3:
        w = round(height * (4 / 3))
    return int(flip >= 0.5), (height - h) // 2, (width - w) // 2, h, w


@pytest.mark.parametrize("size", [(224, 224), (8, 8), (120, 31), (40, 300)], ids=str)
@pytest.mark.parametrize("scale", [(0.08, 1.0), (0.9, 1.0), (0.0001, 0.01)], ids=str)
def test_boxes_are_those_of_the_rule(size: tuple[int, int], scale: tuple[float, float]) -> None:
    numbers_N = torch.arange(1000)
    plan = sample_box(numbers_N, STREAM, flip=True, scale=scale, size=size)
    expected = [drawn_one_by_one(row, scale, *size) for row in STREAM.uniform(numbers_N, 23).tolist()]
    assert torch.equal(torch.stack([tensor.long() for tensor in plan.tensors], dim=1), torch.tensor(expected))


def test_areas_are_uniform_and_ratios_log_uniform() -> None:
    """Up to three quarters of the area every try fits, so that the first is taken."""
    plan = sample_box(torch.arange(20_000), STREAM, flip=True, scale=(0.1, 0.7), size=(2240, 2240))
    quantiles = torch.linspace(0.1, 0.9, 9, dtype=torch.float64)
    areas = plan.height_N * plan.width_N / 2240**2
    tilts = (plan.width_N / plan.height_N).log() / math.log(4 / 3)
    torch.testing.assert_close(areas.double().quantile(quantiles), 0.1 + 0.6 * quantiles, rtol=0, atol=0.01)
    torch.testing.assert_close(tilts.double().quantile(quantiles), 2 * quantiles - 1, rtol=0, atol=0.03)
    for start_N, room_N in ((plan.top_N, 2240 - plan.height_N), (plan.left_N, 2240 - plan.width_N)):
        assert (start_N <= room_N).all()
        assert abs((start_N / room_N).mean() - 0.5) < 0.01


def test_boxes_do_not_depend_on_the_batch_and_flips_are_those_of_the_padded_crop(device: str) -> None:
    numbers_N = torch.arange(500, device=device)
    plan = sample_box(numbers_N, STREAM, flip=True, scale=(0.2, 1.0), size=(50, 60))
    some = sample_box(numbers_N[100:110], STREAM, flip=True, scale=(0.2, 1.0), size=(50, 60))
    on_cpu = sample_box(numbers_N.cpu(), STREAM, flip=True, scale=(0.2, 1.0), size=(50, 60))
    for all_N, part_N, cpu_N in zip(plan.tensors, some.tensors, on_cpu.tensors, strict=True):
        assert torch.equal(all_N[100:110], part_N)
        assert torch.equal(all_N.cpu(), cpu_N)
    assert torch.equal(plan.flip_N, sample_crop(numbers_N, STREAM, flip=True, padding=4).flip_N)
    assert not sample_box(numbers_N, STREAM, flip=False, scale=(0.2, 1.0), size=(50, 60)).flip_N.any()


def test_any_memory_format_and_no_image_at_all(device: str) -> None:
    images_NCHW, plan = random_images(12, 3, 9, 14).to(device), to(random_boxes(12, 9, 14), device)
    before = images_NCHW.clone()
    resized = resize_boxes(images_NCHW, plan)
    assert torch.equal(images_NCHW, before)
    assert torch.equal(resize_boxes(images_NCHW.to(memory_format=torch.channels_last), plan), resized)
    assert torch.equal(resize_boxes(images_NCHW[:1].expand(12, -1, -1, -1), plan)[0], resized[0])
    assert resize_boxes(images_NCHW[:0], plan[:0]).shape == (0, 3, 9, 14)


def test_wrong_images_are_named() -> None:
    plan = random_boxes(6, 4, 4)
    with pytest.raises(InputError, match=r"images are torch\.float32; they must be torch\.uint8"):
        resize_boxes(torch.zeros(6, 3, 4, 4), plan)
    with pytest.raises(InputError, match="plan is for 6 images but there are 2"):
        resize_boxes(random_images(2, 3, 4, 4), plan)
