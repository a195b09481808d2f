"""A folder of decoded images: their pixels as one file, each image's row in it, and where they come from.

The folder's name is a hash over the list of the images (names, labels, parts, classes), their contents, the way of
decoding and its version. So another file, name or label gives another folder, and the same images give the same one,
wherever they lie. A folder gets its name when it is complete, and is never changed afterwards.
"""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InputError
from counterpoint.images.decode import VERSION, Decoding
from counterpoint.images.listing import Listing
from counterpoint.storage.arrays import read_array, write_array
from counterpoint.storage.files import sync_folder, write_json

PIXELS = "pixels.npy"
_ROWS, _ABOUT = "rows.npy", "about.json"


def image_key(listing: Listing, hashes: Sequence[str], decoding: Decoding) -> str:
    """What the images are, as 64 hexadecimal digits."""
    settings = {"version": VERSION, **asdict(decoding), "classes": listing.classes}
    digest = hashlib.sha256(json.dumps(settings).encode())
    parts = listing.parts or ("",) * len(listing)
    for name, label, part, content in zip(listing.names, listing.labels, parts, hashes, strict=True):
        # No name holds a zero byte; and it may hold bytes that are no text.
        digest.update(f"\0{content}\0{label}\0{part}\0{name}".encode(errors="surrogatepass"))
    return digest.hexdigest()


def finish(building: Path, folder: Path, rows_N: Sequence[int], source: Path, decoding: Decoding) -> None:
    """Make a folder of decoded images out of one that holds the pixels alone."""
    write_array(building / _ROWS, np.array(rows_N, np.int64))
    write_json(building / _ABOUT, {"source": ascii(str(source)), "version": VERSION, **asdict(decoding)})
    try:
        os.rename(building, folder)
    except OSError:
        if not folder.is_dir():  # a copy of the images, decoded by another process, may have been faster
            raise
    sync_folder(folder.parent)


def read(folder: Path, count: int, decoding: Decoding) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """The pixels of every row, without reading them yet, and the row of each of the `count` images."""
    remedy = f"remove the folder {folder}, and the images are decoded again"
    rows_N = read_array(folder / _ROWS, remedy)
    try:
        # Copy on write: torch needs arrays that can be written to, and the file itself must not change.
        pixels_RCHW = np.load(folder / PIXELS, mmap_mode="c", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{folder / PIXELS} is missing or damaged ({error}); {remedy}") from None
    if pixels_RCHW.shape[1:] != decoding.shape or rows_N.shape != (count,) or rows_N.max() >= len(pixels_RCHW):
        raise InputError(f"{folder} does not hold {count:,} images of {decoding.shape}; {remedy}")
    return pixels_RCHW, rows_N
