"""Each operation against Pillow itself: 13 operations × 9 sizes × 480 pairs of image and parameter, and real images."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from counterpoint.augment import ops
from counterpoint.errors import InputError

PAIRS = 480
SIZES = [(3, 32, 32), (1, 32, 32), (3, 17, 17), (3, 9, 24), (1, 24, 9), (3, 2, 2), (1, 1, 7), (3, 5, 1), (3, 1, 1)]
AFFINE, BILINEAR = Image.Transform.AFFINE, Image.Resampling.BILINEAR

PILLOW: dict[str, Callable[[Image.Image, float], Image.Image]] = {
    "autocontrast": lambda image, _: ImageOps.autocontrast(image),
    "equalize": lambda image, _: ImageOps.equalize(image),
    "posterize": lambda image, bits: ImageOps.posterize(image, int(bits)),
    "solarize": lambda image, threshold: ImageOps.solarize(image, threshold),  # type: ignore[arg-type]
    "rotate": lambda image, degrees: image.rotate(degrees, BILINEAR),
    "shear_x": lambda image, factor: image.transform(image.size, AFFINE, (1, factor, 0, 0, 1, 0), BILINEAR),
    "shear_y": lambda image, factor: image.transform(image.size, AFFINE, (1, 0, 0, factor, 1, 0), BILINEAR),
    "translate_x": lambda image, pixels: image.transform(image.size, AFFINE, (1, 0, pixels, 0, 1, 0), BILINEAR),
    "translate_y": lambda image, pixels: image.transform(image.size, AFFINE, (1, 0, 0, 0, 1, pixels), BILINEAR),
    "colour": lambda image, factor: ImageEnhance.Color(image).enhance(factor),
    "contrast": lambda image, factor: ImageEnhance.Contrast(image).enhance(factor),
    "brightness": lambda image, factor: ImageEnhance.Brightness(image).enhance(factor),
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
}


def operate(name: str, images_NCHW: Tensor, parameter_N: Tensor) -> Tensor:
    operation = getattr(ops, name)
    return operation(images_NCHW) if name in ("autocontrast", "equalize") else operation(images_NCHW, parameter_N)


def to_pillow(image_CHW: Tensor) -> Image.Image:
    return Image.fromarray(image_CHW[0].numpy() if len(image_CHW) == 1 else image_CHW.permute(1, 2, 0).numpy())


def from_pillow(image: Image.Image) -> Tensor:
    array = torch.from_numpy(np.array(image))
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def assert_equal_to_pillow(device: str, name: str, images_NCHW: Tensor, parameter_N: Tensor) -> None:
    ours = operate(name, images_NCHW.to(device), parameter_N.to(device)).cpu()
    pairs = zip(images_NCHW, parameter_N.tolist(), strict=True)
    expected = torch.stack([from_pillow(PILLOW[name](to_pillow(image), value)) for image, value in pairs])
    assert ours.dtype == torch.uint8
    wrong_N = (ours != expected).flatten(1).any(1)
    assert wrong_N.sum() == 0, (
        f"{int(wrong_N.sum())} of {len(wrong_N)} differ, with {parameter_N[wrong_N].tolist()[:5]}"
    )


def awkward_images(count: int, size: tuple[int, int, int], generator: torch.Generator) -> Tensor:
    """In turn random, dim, constant, black, white, two-valued and one-channel-flat images, and three gradients."""
    _, height, width = size
    across, down = torch.linspace(0, 255, width).expand(height, width), torch.linspace(0, 255, height)[:, None]

    def make(kind: int) -> Tensor:
        noise = torch.randint(0, 256, size, generator=generator)
        flat, second_level = torch.randint(0, 256, (2,), generator=generator).tolist()
        one_flat = torch.cat([torch.full_like(noise[:1], flat), noise[1:]])
        variants: list[Tensor | int] = [noise, noise // 16 + flat // 2, flat, 0, 255]
        variants += [torch.where(noise < 128, flat, second_level), one_flat, across, 255 - down, (across + down) / 2]
        return torch.as_tensor(variants[kind % len(variants)]).to(torch.uint8).expand(size)

    return torch.stack([make(kind) for kind in range(count)])


def whole_range(name: str, count: int, generator: torch.Generator) -> Tensor:
    """Parameters over and past the range that makes sense, special values first."""

    def spread(low: float, high: float, *special: float) -> Tensor:
        drawn = low + (high - low) * torch.rand(count - len(special), dtype=torch.float64, generator=generator)
        return torch.cat([torch.tensor(special, dtype=torch.float64), drawn])

    def whole(low: int, high: int) -> Tensor:
        return torch.arange(count) % (high - low + 1) + low

    if name == "posterize":
        return whole(1, 8)[torch.randperm(count, generator=generator)]
    values = {
        "solarize": torch.where(torch.arange(count) % 4 > 0, whole(0, 256), spread(-3, 260)),
        "rotate": torch.where(torch.arange(count) % 2 > 0, whole(-90, 450), spread(-360, 720)),
        "shear": spread(-2, 2, 0, 0.5, -0.5, 1, -1, 1e-17, -1e-17, 1e-9, -1e-9),
        "translate": torch.where(torch.arange(count) % 2 > 0, whole(-34, 34), spread(-35, 35)),
    }.get(name.split("_")[0], spread(-0.5, 3, 0, 1, 2, 0.5))
    return values[torch.randperm(count, generator=generator)]


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("name", PILLOW)
def test_equal_to_pillow(device: str, name: str, size: tuple[int, int, int]) -> None:
    generator = torch.Generator().manual_seed(SIZES.index(size))
    images_NCHW = awkward_images(PAIRS, size, generator)
    assert_equal_to_pillow(device, name, images_NCHW, whole_range(name, PAIRS, generator))


@pytest.mark.parametrize("name", PILLOW)
def test_equal_to_pillow_on_real_images(device: str, name: str, cifar_images: Tensor) -> None:
    parameter_N = whole_range(name, len(cifar_images), torch.Generator().manual_seed(0))
    assert_equal_to_pillow(device, name, cifar_images, parameter_N)


@pytest.mark.parametrize("size", [(3, 32, 32), (3, 9, 24), (3, 24, 9)], ids=str)
@pytest.mark.parametrize("name", ["rotate", "translate_x", "translate_y"])
def test_whole_numbers_in_an_integer_tensor(device: str, name: str, size: tuple[int, int, int]) -> None:
    """Whole degrees are looked up in a table; right angles are included."""
    images_NCHW = awkward_images(721, size, torch.Generator().manual_seed(0))
    assert_equal_to_pillow(device, name, images_NCHW, torch.arange(-360, 361))


def test_grey_of_a_million_colours(device: str) -> None:
    """Enough for sums that lie exactly between two greys."""
    red, green = torch.arange(256)[:, None].expand(256, 256), torch.arange(256).expand(256, 256)
    colours = [torch.stack([red, green, torch.full_like(red, blue)]) for blue in range(0, 256, 17)]
    assert_equal_to_pillow(device, "colour", torch.stack(colours).to(torch.uint8), torch.zeros(16))


def test_images_larger_than_a_chunk(device: str) -> None:
    images_NCHW = awkward_images(10, (3, 310, 300), torch.Generator().manual_seed(0))
    assert_equal_to_pillow(device, "rotate", images_NCHW, torch.linspace(-30, 30, 10, dtype=torch.float64))


@pytest.mark.parametrize("name", PILLOW)
def test_any_memory_format_and_no_image_at_all(device: str, name: str) -> None:
    images_NCHW = awkward_images(20, (3, 7, 11), torch.Generator().manual_seed(0)).to(device)
    parameter_N = whole_range(name, 20, torch.Generator().manual_seed(0)).to(device)
    ours = operate(name, images_NCHW, parameter_N)
    assert torch.equal(operate(name, images_NCHW.to(memory_format=torch.channels_last), parameter_N), ours)
    assert torch.equal(operate(name, images_NCHW.transpose(2, 3).contiguous().transpose(2, 3), parameter_N), ours)
    assert operate(name, images_NCHW[:0], parameter_N[:0]).shape == (0, 3, 7, 11)


@pytest.mark.parametrize("name", PILLOW)
def test_the_input_stays_as_it_was(device: str, name: str) -> None:
    images_NCHW = awkward_images(20, (3, 8, 8), torch.Generator().manual_seed(0)).to(device)
    before = images_NCHW.clone()
    operate(name, images_NCHW, whole_range(name, 20, torch.Generator().manual_seed(0)).to(device))
    assert torch.equal(images_NCHW, before)


class _NoReading(TorchDispatchMode):
    """Inside, Python may not read a tensor's value, for which it would have to wait for a GPU."""

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        assert function not in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.is_nonzero.default)
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize("name", sorted(PILLOW.keys() - {"posterize", "rotate"}))
def test_python_reads_no_value_of_a_parameter(device: str, name: str) -> None:
    images_NCHW, parameter_N = torch.zeros(4, 3, 8, 8, dtype=torch.uint8, device=device), torch.ones(4, device=device)
    with _NoReading():
        operate(name, images_NCHW, parameter_N)


@pytest.mark.parametrize("name", ["rotate", "shear_x", "shear_y", "translate_x", "translate_y"])
def test_where_a_parameter_is_no_number_the_image_is_black(device: str, name: str) -> None:
    """As it is in Pillow, which takes no infinite angle."""
    images_NCHW = awkward_images(4, (3, 9, 24), torch.Generator().manual_seed(0))
    infinite = 0.0 if name == "rotate" else math.inf
    assert_equal_to_pillow(device, name, images_NCHW, torch.tensor([math.nan, infinite, -infinite, 1.0]))


def test_more_channels_go_each_for_itself() -> None:
    images_NCHW = awkward_images(40, (5, 16, 16), torch.Generator().manual_seed(0))
    degrees_N = whole_range("rotate", 40, torch.Generator().manual_seed(0))
    rotated = ops.rotate(images_NCHW, degrees_N)
    for channel in range(5):
        assert torch.equal(rotated[:, channel], ops.rotate(images_NCHW[:, channel : channel + 1], degrees_N)[:, 0])


@pytest.mark.parametrize("name", PILLOW)
def test_wrong_images_and_parameters(name: str) -> None:
    images_NCHW, parameter_N = torch.zeros(4, 3, 8, 8, dtype=torch.uint8), torch.ones(4, dtype=torch.int64)
    with pytest.raises(InputError, match=r"torch\.float32.*must be torch\.uint8"):
        operate(name, images_NCHW.float(), parameter_N)
    with pytest.raises(InputError, match=r"\(3, 8, 8\).*\(N, C, H, W\)"):
        operate(name, images_NCHW[0], parameter_N)
    with pytest.raises(InputError, match=r"\(4, 3, 0, 8\).*at least 1"):
        operate(name, images_NCHW[:, :, :0], parameter_N)
    if name not in ("autocontrast", "equalize"):
        with pytest.raises(InputError, match=r"the parameter is 3; it must be|in an integer tensor; they are 3"):
            operate(name, images_NCHW, 3)  # type: ignore[arg-type]
        for wrong in (parameter_N[:3], parameter_N[:, None], parameter_N[0]):
            with pytest.raises(InputError, match=r"must be \(4,\), one per image"):
                operate(name, images_NCHW, wrong)


@pytest.mark.parametrize("bits", [torch.tensor([0, 4]), torch.tensor([9, 4]), torch.tensor([1.0, 4.0])])
def test_wrong_bits(bits: Tensor) -> None:
    with pytest.raises(InputError, match="whole numbers from 1 to 8"):
        ops.posterize(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), bits)


@pytest.mark.parametrize("name", ["colour", "contrast"])
def test_grey_needs_one_or_three_channels(name: str) -> None:
    with pytest.raises(InputError, match="2 channels"):
        operate(name, torch.zeros(4, 2, 8, 8, dtype=torch.uint8), torch.ones(4))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32], ids=str)
def test_narrow_integers_are_the_same_numbers(device: str, dtype: torch.dtype) -> None:
    images_NCHW = awkward_images(16, (3, 9, 24), torch.Generator().manual_seed(0)).to(device)
    whole_N = torch.arange(16, device=device) * 8
    for name in ("solarize", "rotate", "shear_x", "translate_y", "brightness"):
        expected = operate(name, images_NCHW, whole_N)
        assert torch.equal(operate(name, images_NCHW, whole_N.to(dtype)), expected), name
