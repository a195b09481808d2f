"""The two atlases: every corruption at every severity, of a small image and of a photograph."""

from pathlib import Path

import sklearn
from PIL import Image

from counterpoint.data import data_root
from counterpoint.pictures.atlas import draw_image_atlas
from figures.sources import Sources
from figures.svg import check_size

MOST_BYTES = 150_000
_QUALITY = 70


def atlas(sources: Sources, out: Path) -> list[Path]:
    """Every corruption of a test image of CIFAR-10, in 256 colours."""
    path = out / "atlas.png"
    assert len(sources.cifar.test)  # raises where CIFAR-10 is missing, before anything is drawn
    draw_image_atlas("1", "cifar10", path, seed=0, root=data_root())
    with Image.open(path) as sheet:
        few_colours = sheet.quantize(256, dither=Image.Dither.NONE)
    few_colours.save(path, optimize=True)
    return [_checked(path)]


def photograph_atlas(_: Sources, out: Path) -> list[Path]:
    """Every corruption of a photograph that scikit-learn brings, with ImageNet-C's constants."""
    path = out / "atlas-photograph.jpg"
    flower = Path(sklearn.__file__).parent / "datasets" / "images" / "flower.jpg"
    draw_image_atlas(str(flower), None, path, seed=0, root=data_root())
    with Image.open(path) as sheet:
        smaller = sheet.resize((sheet.width // 2, sheet.height // 2), Image.Resampling.LANCZOS)
    smaller.save(path, "JPEG", quality=_QUALITY, optimize=True)
    return [_checked(path)]


def _checked(path: Path) -> Path:
    check_size(path, path.stat().st_size, MOST_BYTES)
    return path
