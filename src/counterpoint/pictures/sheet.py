"""A labelled sheet of small pictures, for eyes to check what augmentations and corruptions do."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from counterpoint.errors import InputError

_TILE = 96
_GAP = 4
_MARGIN = 20
_HEADING_HEIGHT = 28
_INK, _FAINT_INK, _PAPER = (32, 36, 42), (120, 126, 134), (255, 255, 255)

Picture = NDArray[np.uint8]
"""(rows, columns, 1 or 3 channels)."""


def check_png(path: Path) -> None:
    """Raise unless the file's name ends in .png."""
    if path.suffix.lower() != ".png":
        raise InputError(f"a PNG cannot be written as {str(path)!r}; give it a name that ends in .png")


def draw_sheet(
    sections: Sequence[tuple[str, Sequence[tuple[str, Sequence[Picture]]]]], columns: Sequence[str], path: Path
) -> None:
    """Write a PNG with one line of column headings. A section is (title, rows), and a row is (label, pictures)."""
    check_png(path)
    font = ImageFont.load_default(size=17)
    labels = [label for _, rows in sections for label, _ in rows]
    left = _MARGIN + round(max((font.getlength(label) for label in labels), default=0)) + 14
    width = left + len(columns) * (_TILE + _GAP) - _GAP + _MARGIN
    height = _MARGIN + _HEADING_HEIGHT + sum(_section_height(title, len(rows)) for title, rows in sections) + _MARGIN
    sheet = Image.new("RGB", (width, height - _GAP), _PAPER)
    draw = ImageDraw.Draw(sheet)
    for column, heading in enumerate(columns):
        middle = left + column * (_TILE + _GAP) + _TILE / 2
        draw.text((middle, _MARGIN + _HEADING_HEIGHT - 10), heading, _FAINT_INK, font, anchor="ms")
    top = _MARGIN + _HEADING_HEIGHT
    for title, rows in sections:
        if title:
            top += 2 * _HEADING_HEIGHT
            draw.text((left, top - 10), title, _FAINT_INK, font, anchor="ls")
        for label, pictures in rows:
            draw.text((left - 14, top + _TILE / 2), label, _INK, font, anchor="rm")
            for column, picture in enumerate(pictures):
                _paste(sheet, picture, left + column * (_TILE + _GAP), top)
            top += _TILE + _GAP
    path.parent.mkdir(parents=True, exist_ok=True)
    sheet.save(path, "PNG", optimize=True)


def _section_height(title: str, rows: int) -> int:
    return rows * (_TILE + _GAP) + (2 * _HEADING_HEIGHT if title else 0)


def _paste(sheet: Image.Image, picture: Picture, left: int, top: int) -> None:
    tile = _tile(picture)
    sheet.paste(tile, (left + (_TILE - tile.width) // 2, top + (_TILE - tile.height) // 2))


def _tile(picture_HWC: Picture) -> Image.Image:
    """The picture at the size of a tile: a small one enlarged by a whole factor, a large one shrunk."""
    picture = Image.fromarray(picture_HWC[..., 0] if picture_HWC.shape[2] == 1 else picture_HWC).convert("RGB")
    longest = max(picture.size)
    if longest > _TILE:
        return picture.resize([max(1, side * _TILE // longest) for side in picture.size], Image.Resampling.LANCZOS)
    factor = _TILE // longest
    return picture.resize([side * factor for side in picture.size], Image.Resampling.NEAREST)
