"""A labelled sheet of small pictures, for eyes to check what augmentations and corruptions do."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from counterpoint.errors import InputError
from counterpoint.storage.files import check_file_path, write_atomically

TILE = 96
_FORMATS = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG"}
_GAP = 4
_MARGIN = 20
_HEADING_HEIGHT = 28
_JPEG_QUALITY = 85
_INK, _FAINT_INK, _PAPER = (32, 36, 42), (120, 126, 134), (255, 255, 255)

Picture = NDArray[np.uint8]
"""(rows, columns, 1 or 3 channels)."""


def check_picture_path(path: Path) -> None:
    """Raise unless the file's name is one of a PNG or a JPEG, and the file can be written."""
    if path.suffix.lower() not in _FORMATS:
        raise InputError(f"a picture cannot be written as {str(path)!r}; give it a name that ends in .png or .jpg")
    check_file_path(path, "picture.png")


def draw_sheet(
    rows: Sequence[tuple[str, Sequence[Picture]]], columns: Sequence[str], path: Path, tile: int = TILE
) -> None:
    """Write a picture with one line of column headings. A row is (label, pictures).

    Each of the pictures has `tile` × `tile` pixels to lie in; rows are no higher than the tallest picture. The label of
    a row without pictures is a title for the rows below it.
    """
    check_picture_path(path)
    font = ImageFont.load_default(size=17)
    fitted = [(label, [_fitted(picture, tile) for picture in pictures]) for label, pictures in rows]
    row_height = max((picture.height for _, pictures in fitted for picture in pictures), default=tile)
    heights = [row_height + _GAP if pictures else 2 * _HEADING_HEIGHT for _, pictures in fitted]
    left = _MARGIN + round(max((font.getlength(label) for label, pictures in fitted if pictures), default=0)) + 14
    width = left + len(columns) * (tile + _GAP) - _GAP + _MARGIN
    top = _MARGIN + _HEADING_HEIGHT
    sheet = Image.new("RGB", (width, top + sum(heights) - _GAP + _MARGIN), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, heading in enumerate(columns):
        draw.text((left + column * (tile + _GAP) + tile / 2, top - 10), heading, _FAINT_INK, font, "ms")
    for (label, pictures), height in zip(fitted, heights, strict=True):
        if pictures:
            draw.text((left - 14, top + row_height / 2), label, _INK, font, anchor="rm")
        else:
            draw.text((left, top + height - 10), label, _FAINT_INK, font, anchor="ls")
        for column, picture in enumerate(pictures):
            across = left + column * (tile + _GAP) + (tile - picture.width) // 2
            sheet.paste(picture, (across, top + (row_height - picture.height) // 2))
        top += height
    content = io.BytesIO()
    sheet.save(content, _FORMATS[path.suffix.lower()], optimize=True, quality=_JPEG_QUALITY)
    write_atomically(path, content.getvalue())


def _fitted(picture_HWC: Picture, tile: int) -> Image.Image:
    """The picture at the size of a tile: a small one enlarged by a whole factor, a large one shrunk."""
    picture = Image.fromarray(picture_HWC[..., 0] if picture_HWC.shape[2] == 1 else picture_HWC).convert("RGB")
    longest = max(picture.size)
    if longest > tile:
        return picture.resize([max(1, side * tile // longest) for side in picture.size], Image.Resampling.LANCZOS)
    factor = tile // longest
    return picture.resize([side * factor for side in picture.size], Image.Resampling.NEAREST)
