"""What holds for every corruption."""

import numpy as np
import pytest

from counterpoint.corrupt import (
    CORRUPTIONS,
    EXTRA_CORRUPTIONS,
    SEVERITIES,
    Constants,
    corrupt,
    default_constants,
)
from counterpoint.corrupt.pixels import Images
from counterpoint.errors import InputError
from tests.corrupt.images import DETERMINISTIC, distance

ALL = CORRUPTIONS + EXTRA_CORRUPTIONS
RANDOM = tuple(name for name in ALL if name not in DETERMINISTIC)
NOISES = ("gaussian_noise", "shot_noise", "speckle_noise")


def test_the_names_are_the_official_ones_in_order() -> None:
    noise = ["gaussian_noise", "shot_noise", "impulse_noise"]
    blur = ["defocus_blur", "glass_blur", "motion_blur", "zoom_blur"]
    weather = ["snow", "frost", "fog", "brightness"]
    digital = ["contrast", "elastic_transform", "pixelate", "jpeg_compression"]
    assert list(CORRUPTIONS) == noise + blur + weather + digital
    assert list(EXTRA_CORRUPTIONS) == ["speckle_noise", "gaussian_blur", "spatter", "saturate"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "shape", [(32, 32, 3), (32, 32, 1), (24, 40, 3), (40, 24, 1), (8, 8, 1), (64, 64, 3), (70, 90, 3), (90, 70, 1)]
)
def test_shape_and_type_are_kept_and_the_input_is_left_alone(name: str, shape: tuple[int, int, int]) -> None:
    images = np.random.default_rng(1).integers(0, 256, (3, *shape), dtype=np.uint8)
    before = images.copy()
    for severity in SEVERITIES:
        corrupted = corrupt(images, name, severity)
        assert corrupted.shape == images.shape
        assert corrupted.dtype == np.uint8
        assert not np.shares_memory(corrupted, images)
    assert np.array_equal(images, before)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("severity", [2, 4])
def test_an_image_depends_on_its_index_not_on_its_batch(name: str, severity: int, made_up: Images) -> None:
    images = np.tile(made_up, (10, 1, 1, 1))  # more than are corrupted at once
    whole = corrupt(images, name, severity, seed=3, start=7)
    middle = corrupt(images[29:50], name, severity, seed=3, start=36)
    first = corrupt(images[:1], name, severity, seed=3, start=7)
    assert np.array_equal(whole[29:50], middle)
    assert np.array_equal(whole[:1], first)


@pytest.mark.parametrize("name", ALL)
def test_memory_layout_does_not_matter(name: str, made_up: Images) -> None:
    columns_first = np.ascontiguousarray(made_up.transpose(0, 3, 2, 1)).transpose(0, 3, 2, 1)
    columns_first.flags.writeable = False
    assert np.array_equal(corrupt(columns_first, name, 3), corrupt(made_up, name, 3))


@pytest.mark.parametrize("name", RANDOM)
def test_another_seed_index_or_severity_is_another_draw(name: str) -> None:
    images = np.tile(np.random.default_rng(2).integers(64, 192, (1, 32, 32, 3), dtype=np.uint8), (2, 1, 1, 1))
    first, second = corrupt(images, name, 2, seed=0)
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, corrupt(images[:1], name, 2, seed=1)[0])
    assert not np.array_equal(first, corrupt(images[:1], name, 3, seed=0)[0])


@pytest.mark.parametrize("name", DETERMINISTIC)
def test_the_deterministic_ones_ignore_seed_and_index(name: str, made_up: Images) -> None:
    assert np.array_equal(corrupt(made_up, name, 2, seed=0), corrupt(made_up, name, 2, seed=1, start=5))


@pytest.mark.parametrize("name", ALL)
def test_every_severity_changes_the_image(name: str, made_up: Images) -> None:
    assert all(distance(corrupt(made_up, name, severity), made_up) > 0.5 for severity in SEVERITIES)


# The affine part of the elastic transform shrinks; saturate takes colour away first, then adds it.
@pytest.mark.parametrize("name", [n for n in ALL if n not in ("elastic_transform", "saturate")])
def test_the_highest_severity_does_more_than_the_lowest(name: str, made_up: Images) -> None:
    images = np.tile(made_up, (5, 1, 1, 1))
    assert distance(corrupt(images, name, 5), images) > 1.2 * distance(corrupt(images, name, 1), images)


@pytest.mark.parametrize(("side", "count", "severity", "least"), [(32, 24, 5, 0.5), (112, 4, 3, 0.67)])
@pytest.mark.parametrize("name", [n for n in ALL if n not in ("pixelate", "jpeg_compression", "saturate")])
def test_severity_means_the_same_at_another_size(name: str, side: int, count: int, severity: int, least: float) -> None:
    """Twice as large, every pixel repeated: the change has the same strength, as far as a doubled grid allows. Small
    images have CIFAR-C's constants, the others ImageNet-C's."""
    waves = np.sin(np.arange(side) / (3 if side == 32 else 4))
    image = (128 + 80 * waves[:, None, None] * waves[None, :, None] + np.array([30, 0, -30])).astype(np.uint8)
    images = np.tile(image, (count, 1, 1, 1))
    large = images.repeat(2, axis=1).repeat(2, axis=2)
    ratio = distance(corrupt(large, name, severity), large) / distance(corrupt(images, name, severity), images)
    assert least < ratio < 1.5


@pytest.mark.parametrize("name", ALL)
def test_a_photograph_depends_on_its_index_not_on_its_batch(name: str) -> None:
    images = np.random.default_rng(1).integers(0, 256, (5, 72, 100, 3), dtype=np.uint8)
    whole = corrupt(images, name, 2, seed=3, start=7)
    assert np.array_equal(whole[4:], corrupt(images[4:], name, 2, seed=3, start=11))
    assert whole.flags.c_contiguous


@pytest.mark.parametrize("name", ["impulse_noise", "jpeg_compression", *NOISES])
def test_a_grey_image_is_changed_as_strongly_as_its_colour_copy(name: str, made_up: Images) -> None:
    grey, colour = made_up[..., :1], made_up[..., :1].repeat(3, axis=3)
    expected = distance(corrupt(colour, name, 3), colour)
    assert distance(corrupt(grey, name, 3), grey) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize("name", [n for n in ALL if n not in ("impulse_noise", "jpeg_compression", *NOISES)])
def test_a_grey_image_is_changed_as_its_colour_copy_where_channels_share_the_draw(name: str, made_up: Images) -> None:
    grey = made_up[..., :1] // 2  # so dark that no channel is clipped on its own
    colour = corrupt(grey.repeat(3, axis=3), name, 3)
    luminance = np.round(colour @ np.array([0.299, 0.587, 0.114]))[..., None]
    assert np.abs(corrupt(grey, name, 3) - luminance).max() <= 1


def test_small_images_get_cifar_cs_constants_and_photographs_imagenet_cs() -> None:
    sizes = [(8, 8), (64, 300), (300, 64), (65, 65), (224, 224)]
    chosen = [default_constants(*size) for size in sizes]
    assert chosen == ["cifar-c", "cifar-c", "cifar-c", "imagenet-c", "imagenet-c"]
    for (height, width), constants in zip(sizes, chosen, strict=True):
        images = np.random.default_rng(1).integers(0, 256, (1, height, width, 1), dtype=np.uint8)
        by_default = corrupt(images, "contrast", 2)
        other: Constants = "imagenet-c" if constants == "cifar-c" else "cifar-c"
        assert np.array_equal(by_default, corrupt(images, "contrast", 2, constants=constants))
        assert not np.array_equal(by_default, corrupt(images, "contrast", 2, constants=other))


def test_unknown_constants_are_named(made_up: Images) -> None:
    with pytest.raises(InputError, match=r"unknown constants 'imagenet'.*known: cifar-c, imagenet-c"):
        corrupt(made_up, "fog", 1, constants="imagenet")  # type: ignore[arg-type]


@pytest.mark.parametrize("severity", [0, 6, -1, 2.0, True, "3", None])
def test_a_wrong_severity_is_named(severity: int, made_up: Images) -> None:
    with pytest.raises(InputError, match=r"severity is .*from 1 to 5"):
        corrupt(made_up, "fog", severity)


def test_numpy_integers_are_integers(made_up: Images) -> None:
    typed = corrupt(made_up, "snow", np.int64(3), np.uint8(2), np.int32(4))  # type: ignore[arg-type]
    assert np.array_equal(typed, corrupt(made_up, "snow", 3, 2, 4))


def test_a_wrong_name_gets_the_nearest_suggested(made_up: Images) -> None:
    with pytest.raises(InputError, match=r"unknown corruption 'gausian_noise'; did you mean 'gaussian_noise'"):
        corrupt(made_up, "gausian_noise", 1)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 32, 32, 3), np.float32), "images are float32; a NumPy array of uint8"),
        (np.zeros((2, 32, 32, 3), np.int64), "images are int64"),
        ([[0]], "images are list"),
        (np.zeros((0, 32, 32, 3), np.uint8), "empty"),
        (np.zeros((32, 32, 3), np.uint8), r"shape \(32, 32, 3\); it must be"),
        (np.zeros((2, 32, 32, 4), np.uint8), "1 or 3 channels"),
        (np.zeros((2, 3, 32, 32), np.uint8), "1 or 3 channels"),
        (np.zeros((2, 7, 32, 3), np.uint8), "7×32 pixels; both sides must be 8 or more"),
    ],
)
def test_wrong_images_are_refused(images: Images, message: str) -> None:
    with pytest.raises(InputError, match=message):
        corrupt(images, "contrast", 1)


@pytest.mark.parametrize("argument", ["seed", "start"])
@pytest.mark.parametrize("value", [-1, 0.5, True])
def test_a_wrong_seed_or_start_is_refused(argument: str, value: int, made_up: Images) -> None:
    with pytest.raises(InputError, match=f"{argument} is .*0 or more"):
        corrupt(made_up, "contrast", 1, **{argument: value})  # type: ignore[arg-type]
