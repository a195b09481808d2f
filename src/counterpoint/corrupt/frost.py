"""Frost to lay over images: the original photographs where they are at hand, otherwise a texture made here.

The photographs (Apache-2.0, github.com/hendrycks/robustness) are not part of this project. They are looked for in the
folder that the user names. If none was named, they are looked for in `frost/` of the data folder, then in an installed
`imagecorruptions` wheel.
"""

import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image
from scipy import ndimage

from counterpoint.corrupt.constants import Table
from counterpoint.corrupt.frost_texture import frost_textures
from counterpoint.corrupt.pixels import Floats, Images, Scale, as_channels
from counterpoint.errors import InputError
from counterpoint.storage.folders import data_root

FrostSource = Literal["photographs", "texture"]
FrostDir = Path | Literal["texture"]
"""The folder of the photographs, or "texture" for the texture even where there are photographs."""

# The original lists six photographs but draws from the first five; 2 and 3 are the same picture.
_PHOTOGRAPHS = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def find_frost(data_dir: Path | str) -> FrostDir:
    """The photographs in `frost/` of this data folder, else those of an installed wheel, else the texture.

    >>> from pathlib import Path
    >>> from counterpoint.corrupt import find_frost
    >>> Path("data", "frost").mkdir(parents=True)
    >>> find_frost(Path("data")).as_posix()
    'data/frost'
    """
    if (photographs := Path(data_dir, "frost")).is_dir():
        return photographs
    wheel = importlib.util.find_spec("imagecorruptions")
    in_wheel = (Path(place, "frost") for place in (wheel and wheel.submodule_search_locations) or [])
    return next((folder for folder in in_wheel if _holds_photographs(folder)), "texture")


def frost_source(frost_dir: FrostDir | None = None) -> FrostSource:
    """What `corrupt(…, "frost", …, frost_dir=frost_dir)` lays over the images; results should record it.

    >>> from counterpoint.corrupt import frost_source
    >>> frost_source("texture")
    'texture'
    """
    return "texture" if _photograph_folder(frost_dir) is None else "photographs"


def frost_pictures(
    frost_dir: FrostDir | None, scale: Scale, table: Table, channels: int = 3
) -> tuple[Floats | Images, ...]:
    """The pictures (rows, columns, channels; in [0, 1] or as bytes) in the scale that suits images of this size.

    All are larger than the images, and are enlarged for that. But unless the table allows it, photographs are refused
    that would have to be enlarged for square images already.
    """
    folder = _photograph_folder(frost_dir)
    settings = (table.photograph_scale, table.enlarge_photographs, table.frost_in_bytes)
    return _scaled_pictures(folder, scale, channels, *settings)


def _photograph_folder(frost_dir: FrostDir | None) -> Path | None:
    place = find_frost(data_root()) if frost_dir is None else frost_dir
    if place == "texture":
        return None
    place = Path(place)  # a text, too
    if not _holds_photographs(place):
        raise InputError(
            f"{place} does not hold the photographs {', '.join(_PHOTOGRAPHS)}; add them, or remove the folder"
        )
    return place


def _holds_photographs(folder: Path) -> bool:
    return all((folder / name).is_file() for name in _PHOTOGRAPHS)


@lru_cache(maxsize=4)
def _scaled_pictures(
    folder: Path | None, scale: Scale, channels: int, for_reference: float, enlarge: bool, in_bytes: bool
) -> tuple[Floats | Images, ...]:
    full = frost_textures() if folder is None else _photographs(folder)
    by = for_reference * scale.factor
    scaled = [as_channels(_scaled(picture, scale, by, enlarge or folder is None), channels) for picture in full]
    return tuple(np.rint(picture * 255).astype(np.uint8) if in_bytes else picture for picture in scaled)


def _photographs(folder: Path) -> list[Floats]:
    pictures: list[Floats] = []
    for name in _PHOTOGRAPHS:
        with Image.open(folder / name) as image:
            pictures.append(np.asarray(image.convert("RGB")) / 255.0)
    return pictures


def _scaled(picture: Floats, scale: Scale, by: float, enlarge: bool) -> Floats:
    """Scale bilinearly without antialiasing, as in the original."""
    rows, columns, _ = picture.shape
    height, width = scale.height, scale.width
    if not enlarge and min(rows, columns) * by <= min(height, width):
        raise InputError(
            f"a frost photograph has {rows}×{columns} pixels, which is too small for images of {height}×{width} when "
            f"scaled by {by:.3g}; use larger photographs, or frost_dir='texture'"
        )
    by = max(by, (height + 1) / rows, (width + 1) / columns)
    if by == 1:
        return picture
    row, column = (np.arange(round(size * by)) + 0.5 for size in (rows, columns))
    places = np.meshgrid(row / by - 0.5, column / by - 0.5, indexing="ij")
    channels = [ndimage.map_coordinates(picture[..., c], places, order=1, mode="nearest") for c in range(3)]
    return np.stack(channels, axis=-1)
