"""Pictures that tests make: of every mode and format, whole and broken."""

import io
import struct
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

EXIF_ORIENTATION = 0x0112


def colours(height: int = 12, width: int = 10, seed: int = 0) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def saved(image: Image.Image | np.ndarray, file_format: str = "PNG", **options: Any) -> bytes:
    file = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(file, file_format, **options)
    return file.getvalue()


def turned(image: Image.Image, file_format: str, orientation: int) -> bytes:
    """The picture with an EXIF orientation."""
    exif = Image.Exif()
    exif[EXIF_ORIENTATION] = orientation
    return saved(image, file_format, exif=exif, **({"lossless": True} if file_format == "WEBP" else {}))


def bomb(width: int = 100_000, height: int = 100_000) -> bytes:
    """A PNG of some dozen bytes that claims very many pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"\0" * 100)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def tiled(tile_side: int, side: int = 16) -> bytes:
    """A grey TIFF of few pixels, all of which lie in the corner of one black tile."""
    tile = zlib.compress(bytes(tile_side * tile_side))
    # Width, height, bits, compression by zlib, 0 is black, channels, the tile's width and height, its place and length.
    place = 8 + 2 + 10 * 12 + 4
    tags = {256: side, 257: side, 258: 8, 259: 8, 262: 1, 277: 1, 322: tile_side, 323: tile_side}
    tags |= {324: place, 325: len(tile)}
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags.items())
    return b"II*\0" + struct.pack("<IH", 8, len(tags)) + entries + struct.pack("<I", 0) + tile


def write(path: Path, content: bytes | np.ndarray | None = None, seed: int = 0) -> Path:
    """A file, by default a small PNG whose pixels depend on the seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        content if isinstance(content, bytes) else saved(colours(seed=seed) if content is None else content)
    )
    return path


def write_classes(folder: Path, classes: dict[str, int], seed: int = 0) -> Path:
    """A folder with so many different pictures of each class: 0.png, 1.png, …"""
    for label, count in classes.items():
        for number in range(count):
            seed += 1
            write(folder / label / f"{number}.png", seed=seed)
    return folder
