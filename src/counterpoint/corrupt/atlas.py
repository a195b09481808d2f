"""A picture of every corruption at every severity, to be checked by eye."""

from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from counterpoint.corrupt.pixels import Images
from counterpoint.corrupt.suite import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, check_images, corrupt

_TILE = 96
_GAP = 4
_MARGIN = 20
_LABEL_WIDTH = 180
_HEADING_HEIGHT = 28
_EXTRA_GAP = 2 * _HEADING_HEIGHT
_INK, _FAINT_INK, _PAPER = (32, 36, 42), (120, 126, 134), (255, 255, 255)


def draw_atlas(image_HWC: Images, path: Path, seed: int = 0, *, frost_dir: Path | None = None) -> None:
    """Write a PNG: a row a corruption, the extra ones below; the columns are the image itself and severities 1 to 5."""
    image_NHWC = np.asarray(image_HWC)[None]
    check_images(image_NHWC)
    names = CORRUPTIONS + EXTRA_CORRUPTIONS
    right = _MARGIN + _LABEL_WIDTH + (1 + len(SEVERITIES)) * (_TILE + _GAP) - _GAP + _MARGIN
    bottom = _row_top(len(names) - 1) + _TILE + _MARGIN
    sheet = Image.new("RGB", (right, bottom), _PAPER)
    _write_headings(ImageDraw.Draw(sheet))
    for row, name in enumerate(names):
        cells = [corrupt(image_NHWC, name, severity, seed, frost_dir=frost_dir) for severity in SEVERITIES]
        for column, cell_NHWC in enumerate([image_NHWC, *cells]):
            tile = _tile(cell_NHWC[0])
            centring = ((_TILE - tile.width) // 2, (_TILE - tile.height) // 2)
            sheet.paste(tile, (_column_left(column) + centring[0], _row_top(row) + centring[1]))
    sheet.save(path, "PNG", optimize=True)


def _row_top(row: int) -> int:
    below_gap = _EXTRA_GAP if row >= len(CORRUPTIONS) else 0
    return _MARGIN + _HEADING_HEIGHT + row * (_TILE + _GAP) + below_gap


def _column_left(column: int) -> int:
    return _MARGIN + _LABEL_WIDTH + column * (_TILE + _GAP)


def _write_headings(draw: ImageDraw.ImageDraw) -> None:
    font = ImageFont.load_default(size=17)
    for column, text in enumerate(["clean", *map(str, SEVERITIES)]):
        draw.text((_column_left(column) + _TILE / 2, _row_top(0) - 10), text, _FAINT_INK, font, anchor="ms")
    for row, name in enumerate(CORRUPTIONS + EXTRA_CORRUPTIONS):
        middle = (_MARGIN + _LABEL_WIDTH - 14, _row_top(row) + _TILE / 2)
        draw.text(middle, name.replace("_", " "), _INK, font, anchor="rm")
    below_gap = (_column_left(0), _row_top(len(CORRUPTIONS)) - 10)
    draw.text(below_gap, "extra corruptions, for validation only", _FAINT_INK, font, anchor="ls")


def _tile(image_HWC: Images) -> Image.Image:
    """Small images enlarged by a whole factor, pixels visible; large ones shrunk."""
    picture = Image.fromarray(image_HWC[..., 0] if image_HWC.shape[2] == 1 else image_HWC).convert("RGB")
    longest = max(picture.size)
    if longest > _TILE:
        return picture.resize([max(1, side * _TILE // longest) for side in picture.size], Image.Resampling.LANCZOS)
    factor = _TILE // longest
    return picture.resize([side * factor for side in picture.size], Image.Resampling.NEAREST)
