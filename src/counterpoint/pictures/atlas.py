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
from counterpoint.pictures.sheet import draw_sheet
from counterpoint.watching import SILENT, Watcher


def draw_atlas(
    image_HWC: Images,
    path: Path,
    seed: int = 0,
    *,
    frost_dir: FrostDir | None = None,
    watcher: Watcher = SILENT,
) -> None:
    """Write a PNG: one row per corruption, the extra ones below. Columns are the image itself and severities 1 to 5."""
    image_NHWC = np.asarray(image_HWC)[None]
    check_images(image_NHWC)
    cells = [(name, severity) for name in CORRUPTIONS + EXTRA_CORRUPTIONS for severity in SEVERITIES]
    drawn: dict[str, list[Images]] = {}
    for done, (name, severity) in enumerate(cells):
        watcher.counted("corrupting the image", done, len(cells))
        cell_HWC = corrupt(image_NHWC, name, severity, seed, frost_dir=frost_dir)[0]
        drawn.setdefault(name, [image_NHWC[0]]).append(cell_HWC)
    watcher.counted("corrupting the image", len(cells), len(cells))

    def row(name: str) -> tuple[str, list[Images]]:
        return name.replace("_", " "), drawn[name]

    sections = [
        ("", [row(name) for name in CORRUPTIONS]),
        ("extra corruptions, for validation only", [row(name) for name in EXTRA_CORRUPTIONS]),
    ]
    draw_sheet(sections, ["clean", *map(str, SEVERITIES)], path)


def draw_image_atlas(
    image: str,
    dataset: str | None,
    path: Path,
    *,
    seed: int,
    root: Path,
    watcher: Watcher = SILENT,
) -> None:
    """Draw the atlas of `image`, which is the number of a test image or the path of a picture.

    Without a data set the number is that of a CIFAR-10 image if CIFAR-10 is in `root`, otherwise that of a digit.
    """
    image_HWC = _test_image(int(image), dataset, root) if image.isdecimal() else _picture(Path(image))
    draw_atlas(image_HWC, path, seed, frost_dir=find_frost(root), watcher=watcher)


def _test_image(number: int, dataset: str | None, root: Path) -> np.ndarray:
    if dataset is None:
        dataset = "cifar10" if any((root / folder).is_dir() for folder in CIFAR10.folders) else "digits"
    test = load(dataset, root).test
    if number >= len(test):
        raise InputError(f"image is {number}; {dataset} has test images 0 to {len(test) - 1}")
    return test.images_NCHW[number].permute(1, 2, 0).numpy()


def _picture(path: Path) -> np.ndarray:
    try:
        with Image.open(path) as picture:
            return np.asarray(picture.convert("RGB"))
    except OSError as error:
        raise InputError(f"{path} is neither a test image's number nor a picture that can be read ({error})") from None
