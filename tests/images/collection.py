"""A collection of pictures as people have them: of many sizes, modes and formats, in classes that can be learned."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import Image

from tests.images.pictures import bomb, saved, turned

CLASSES = ("gestreift quer", "hoch", "плитка")
"""Stripes across, stripes upright, and tiles."""


def pattern(kind: int, height: int, width: int, rng: np.random.Generator) -> Image.Image:
    """Eight bright or dark bands over the picture, across or upright or both, under noise; grey tells them as well."""
    phase = int(rng.integers(2))
    rows = (np.arange(height) * 8 // height + phase) % 2
    columns = (np.arange(width) * 8 // width + phase) % 2
    bands = {0: rows[:, None] + 0 * columns, 1: columns + 0 * rows[:, None], 2: rows[:, None] ^ columns}[kind]
    tint = rng.integers(90, 160, 3)
    pixels = 30 + bands[:, :, None] * tint + rng.integers(0, 30, (height, width, 3))
    return Image.fromarray(pixels.astype(np.uint8))


def _sixteen_bit(image: Image.Image) -> bytes:
    return saved(Image.fromarray(np.asarray(image.convert("L"), dtype=np.uint16) * 257))


def _turned_away(image: Image.Image) -> bytes:
    """Stored lying on its side, with an EXIF orientation that puts it upright."""
    return turned(image.transpose(Image.Transpose.ROTATE_90), "JPEG", 6)


WAYS: dict[str, Callable[[Image.Image], bytes]] = {
    "rgb.png": saved,
    "rgb.jpg": lambda image: saved(image, "JPEG", quality=92),
    "rgb.webp": lambda image: saved(image, "WEBP"),
    "rgb.bmp": lambda image: saved(image, "BMP"),
    "grey.png": lambda image: saved(image.convert("L")),
    "palette.gif": lambda image: saved(image.convert("P", palette=Image.Palette.ADAPTIVE), "GIF"),
    "alpha.png": lambda image: saved(image.convert("RGBA")),
    "cmyk.jpg": lambda image: saved(image.convert("CMYK"), "JPEG", quality=92),
    "16-bit.png": _sixteen_bit,
    "turned.jpg": _turned_away,
}
"""How pictures are stored, by the end of the file's name."""


def write_collection(folder: Path, counts: dict[str, int], classes: tuple[str, ...] = CLASSES, seed: int = 0) -> Path:
    """So many pictures in each part (or, for the part "", without parts), of the classes and ways in turn."""
    rng = np.random.default_rng(seed)
    ends = list(WAYS)
    for part, count in counts.items():
        for number in range(count):
            kind, end = number % len(classes), ends[number // len(classes) % len(ends)]
            height, width = rng.integers(24, 65, 2)
            path = folder / part / classes[kind] / f"{number} {end}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(WAYS[end](pattern(CLASSES.index(classes[kind]), height, width, rng)))
    return folder


def add_bad_files(folder: Path) -> list[Path]:
    """A picture cut short, a bomb, and a file that is no picture."""
    whole = saved(pattern(0, 40, 40, np.random.default_rng(1)))
    contents = {"cut short.png": whole[: len(whole) // 2], "bomb.png": bomb(), "notes.png": b"buy milk"}
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    return [folder / name for name in contents]
