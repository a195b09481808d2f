"""A picture of every corruption at every severity, to be checked by eye."""

from pathlib import Path

import numpy as np
from PIL import Image

from counterpoint.corrupt.frost import FrostDir, find_frost
from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, check_images, corrupt
from counterpoint.data import load
from counterpoint.data.cifar import CIFAR10
from counterpoint.errors import InputError
from counterpoint.images.decode import decode_whole
from counterpoint.pictures.sheet import TILE, draw_sheet
from counterpoint.records.images import Constants
from counterpoint.watching import SILENT, Watcher, counting

_SIDE = 224  # pixels; ImageNet-C's images have as many
_PHOTOGRAPH_TILE = 160  # pixels; the blocks of a JPEG and fine noise would not be seen in smaller ones


def draw_atlas(
    image_HWC: Images,
    path: Path,
    seed: int = 0,
    *,
    constants: Constants | None = None,
    frost_dir: FrostDir | None = None,
    watcher: Watcher = SILENT,
) -> None:
    """Draw one row per corruption, the extra ones below. Columns are the image itself and severities 1 to 5.

    A larger image is first reduced, so that its shorter side has 224 pixels.
    """
    check_images(np.asarray(image_HWC)[None])
    image_NHWC = _reduced(image_HWC)[None]
    cells = [(name, severity) for name in CORRUPTIONS + EXTRA_CORRUPTIONS for severity in SEVERITIES]
    drawn: dict[str, list[Images]] = {}
    for name, severity in counting(cells, watcher, "corrupting the image", len(cells)):
        cell_HWC = corrupt(image_NHWC, name, severity, seed, constants=constants, frost_dir=frost_dir)[0]
        drawn.setdefault(name, [image_NHWC[0]]).append(cell_HWC)
    rows = [(name.replace("_", " "), images) for name, images in drawn.items()]
    rows.insert(len(CORRUPTIONS), ("extra corruptions, for validation only", []))
    tile = TILE if max(image_NHWC.shape[1:3]) <= TILE else _PHOTOGRAPH_TILE
    draw_sheet(rows, ["clean", *map(str, SEVERITIES)], path, tile)


def draw_image_atlas(
    image: str,
    dataset: str | None,
    path: Path,
    *,
    seed: int,
    root: Path,
    constants: Constants | None = None,
    watcher: Watcher = SILENT,
) -> None:
    """Draw the atlas of `image`, which is the number of a test image or the path of a picture.

    Without a data set the number is that of a CIFAR-10 image if CIFAR-10 is in `root`, otherwise that of a digit.
    """
    if not image.isdecimal() and path.exists() and Path(image).exists() and path.samefile(image):
        raise InputError(f"{path} is the picture itself, and the atlas would replace it; choose another file")
    image_HWC = _test_image(int(image), dataset, root) if image.isdecimal() else _picture(Path(image))
    draw_atlas(image_HWC, path, seed, constants=constants, frost_dir=find_frost(root), watcher=watcher)


def _test_image(number: int, dataset: str | None, root: Path) -> np.ndarray:
    if dataset is None:
        dataset = "cifar10" if any((root / folder).is_dir() for folder in CIFAR10.folders) else "digits"
    test = load(dataset, root).test
    if number >= len(test):
        raise InputError(f"image is {number}; {dataset} has test images 0 to {len(test) - 1}")
    return test.images_NCHW[number].permute(1, 2, 0).numpy()


def _picture(path: Path) -> np.ndarray:
    try:
        return decode_whole(path.read_bytes())
    except (OSError, InputError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{path} is neither a test image's number nor a picture that can be read ({why})") from None


def _reduced(image_HWC: Images) -> Images:
    height, width, channels = image_HWC.shape
    shrinking = _SIDE / min(height, width)
    if shrinking >= 1:
        return image_HWC
    picture = Image.fromarray(image_HWC[..., 0] if channels == 1 else image_HWC)
    reduced = picture.resize((round(width * shrinking), round(height * shrinking)), Image.Resampling.BILINEAR)
    return np.asarray(reduced).reshape(reduced.height, reduced.width, channels)
