"""One function for all corruptions, their names, and the check of what it is given."""

from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image

from counterpoint.corrupt import blur, digital, noise, weather
from counterpoint.corrupt.constants import choose_constants, read_table
from counterpoint.corrupt.draws import Draws
from counterpoint.corrupt.frost import FrostDir, frost_pictures
from counterpoint.corrupt.pixels import Images, Scale
from counterpoint.corrupt.spatter import spatter
from counterpoint.errors import InputError, one_of, whole_number
from counterpoint.records.images import Constants

VERSION = "1"  # of the generator; it rises when the same seed no longer gives the same bytes
SEVERITIES = (1, 2, 3, 4, 5)

_FUNCTIONS: dict[str, Callable[..., Images]] = {
    "gaussian_noise": noise.gaussian_noise,
    "shot_noise": noise.shot_noise,
    "impulse_noise": noise.impulse_noise,
    "defocus_blur": blur.defocus_blur,
    "glass_blur": blur.glass_blur,
    "motion_blur": blur.motion_blur,
    "zoom_blur": blur.zoom_blur,
    "snow": weather.snow,
    "frost": weather.frost,
    "fog": weather.fog,
    "brightness": digital.brightness,
    "contrast": digital.contrast,
    "elastic_transform": digital.elastic_transform,
    "pixelate": digital.pixelate,
    "jpeg_compression": digital.jpeg_compression,
    "speckle_noise": noise.speckle_noise,
    "gaussian_blur": blur.gaussian_blur,
    "spatter": spatter,
    "saturate": digital.saturate,
}
CORRUPTIONS = tuple(_FUNCTIONS)[:15]
EXTRA_CORRUPTIONS = tuple(_FUNCTIONS)[15:]

_SMALLEST_SIDE = 8
# Temporary arrays then have 512 KB. Much larger ones do not fit into the cache. The C library may also return them to
# the system after each use, and the page faults then cost more than the arithmetic.
_VALUES_PER_PIECE = 1 << 16
_IMAGE_BY_IMAGE = ("frost", "pixelate", "jpeg_compression")  # these corruptions make no larger arrays themselves


def corrupt(
    images_NHWC: Images,
    name: str,
    severity: int,
    seed: int = 0,
    start: int = 0,
    *,
    constants: Constants | None = None,
    frost_dir: FrostDir | None = None,
) -> Images:
    """Corrupt images: `name` is one of CORRUPTIONS or EXTRA_CORRUPTIONS, and `severity` is from 1 to 5.

    `images_NHWC` is a NumPy array of uint8 (N, H, W, C) with 1 or 3 channels and at least 8×8 pixels. The result has
    the same shape and type.

    The result for an image depends only on its pixels and on (seed, name, severity, its index). `start` is the index of
    the first image, so that a set can be made in pieces.

    Lengths in pixels scale with the shorter side. In images of 8 or 16 pixels the mildest blurs are then too small to
    change anything. Noise, pixelation and JPEG have no lengths to scale: they are given per pixel, as a fraction and as
    a quality.

    `constants` says how strong the corruptions are. Without it they are CIFAR-C's for images of up to 64 pixels, and
    ImageNet-C's for larger ones (`default_constants`).

    `frost_dir` is the folder of the frost photographs, or "texture". Without it `find_frost` looks for them.

    >>> import numpy as np
    >>> from counterpoint.corrupt import corrupt
    >>> images = np.random.default_rng(0).integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
    >>> foggy = corrupt(images, "fog", severity=3)
    >>> foggy.shape, foggy.dtype
    ((2, 32, 32, 3), dtype('uint8'))
    """
    check_cell(name, severity)
    check_images(images_NHWC)
    whole_number("seed", seed)
    whole_number("start", start)
    height, width = images_NHWC.shape[1:3]
    table = read_table(choose_constants(constants, height, width))
    scale = Scale(height, width, table.reference_side)
    arguments = table.arguments(name, severity)
    if name == "frost":
        arguments["pictures"] = frost_pictures(frost_dir, scale, table, images_NHWC.shape[3])
    if name in _IMAGE_BY_IMAGE:
        return _FUNCTIONS[name](images_NHWC, Draws(seed, name, severity, start, len(images_NHWC)), scale, **arguments)
    corrupted = np.empty(images_NHWC.shape, np.uint8)
    for piece in _pieces(images_NHWC):
        draws = Draws(seed, name, severity, start=start + piece.start, count=piece.stop - piece.start)
        corrupted[piece] = _FUNCTIONS[name](images_NHWC[piece], draws, scale, **arguments)
    return corrupted


def check_cell(name: str, severity: int) -> None:
    """Raise unless there is such a corruption and such a severity."""
    one_of("corruption", name, _FUNCTIONS)
    whole_number("severity", severity, SEVERITIES[0], SEVERITIES[-1])


def check_images(images_NHWC: Images) -> None:
    """Raise unless these are 8-bit images, at least one, grey or RGB."""
    if not isinstance(images_NHWC, np.ndarray) or images_NHWC.dtype != np.uint8:
        is_array = isinstance(images_NHWC, np.ndarray)
        kind = images_NHWC.dtype if is_array else type(images_NHWC).__name__
        raise InputError(
            f"images are {kind}; a NumPy array of uint8 values from 0 to 255 is needed{_hint(images_NHWC)}"
        )
    shape = images_NHWC.shape
    if len(shape) != 4 or shape[3] not in (1, 3):
        hint = ""
        if len(shape) == 3 and shape[2] in (1, 3):
            hint = " (images[None] makes a batch of one)"
        elif len(shape) == 4 and shape[1] in (1, 3):
            hint = " (images.transpose(0, 2, 3, 1) puts the channels last)"
        raise InputError(f"images have the shape {shape}; it must be (images, rows, columns, 1 or 3 channels){hint}")
    if shape[0] == 0:
        raise InputError(f"the batch of images is empty (shape {shape}); give at least one")
    if min(shape[1:3]) < _SMALLEST_SIDE:
        raise InputError(f"images are {shape[1]}×{shape[2]} pixels; both sides must be {_SMALLEST_SIDE} or more")


def _hint(images: object) -> str:
    """How to make such an array of what was given."""
    if isinstance(images, Image.Image):
        return " (np.asarray(picture.convert('RGB'))[None] makes one of a picture)"
    if type(images).__module__ == "torch":  # which is not imported here
        return " (images.permute(0, 2, 3, 1).numpy() makes one of a tensor with the channels first)"
    if isinstance(images, np.ndarray) and images.dtype.kind == "f":
        return " ((255 * images).round().astype(np.uint8) makes one of values from 0 to 1)"
    return ""


def _pieces(images_NHWC: Images) -> Iterator[slice]:
    step = max(1, _VALUES_PER_PIECE // images_NHWC[0].size)
    for first in range(0, len(images_NHWC), step):
        yield slice(first, min(first + step, len(images_NHWC)))
