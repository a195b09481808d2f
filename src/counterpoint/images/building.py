"""Decoding all images into one file, in parallel. Each process writes its own rows, so memory holds a few images."""

import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from counterpoint.errors import InputError
from counterpoint.images.archives import read_rows
from counterpoint.images.decode import Decoding, decode, to_pixels
from counterpoint.images.listing import Listing
from counterpoint.processes import parallel_map
from counterpoint.watching import Watcher

_BYTES_AT_ONCE = 1 << 23
_MOST_AT_ONCE = 64

Picture = Path | np.ndarray
"""A file, or the pixels of a row as (H, W, C)."""
Pictures = list[Path] | np.ndarray


class _ChangedError(Exception):
    """A file is no longer what it was when it was hashed."""


@dataclass(frozen=True)
class _Piece:
    """Consecutive images, and where their pixels go."""

    first: int
    pictures: Pictures
    hashes: Sequence[str]
    decoding: Decoding
    file: Path
    begin: int  # of the first image's pixels, in bytes


def decode_all(
    listing: Listing, hashes: Sequence[str], decoding: Decoding, file: Path, workers: int, watcher: Watcher
) -> dict[int, str]:
    """Write the pixels of every image to an .npy file, and return the images that could not be decoded, with the
    reasons.

    The row of such an image is black.
    """
    image_bytes = int(np.prod(decoding.shape))
    _check_space(file.parent, len(listing) * image_bytes)
    at_once = min(_MOST_AT_ONCE, max(1, _BYTES_AT_ONCE // image_bytes))
    begin = np.lib.format.open_memmap(file, "w+", np.uint8, (len(listing), *decoding.shape)).offset
    starts = range(0, len(listing), at_once)
    pieces = (
        _Piece(start, pictures, hashes[start : start + at_once], decoding, file, begin + start * image_bytes)
        for start, pictures in zip(starts, _pictures(listing, at_once), strict=True)
    )
    bad: dict[int, str] = {}
    try:
        with parallel_map(min(workers, len(starts))) as in_parallel:
            for last, reasons in in_parallel(_write_piece, pieces):
                bad |= reasons
                watcher.counted("decoding images", last, len(listing))
    except _ChangedError as error:
        raise InputError(f"{error} of {listing.source} changed while it was read; run this again") from None
    with file.open("r+b") as written:
        os.fsync(written.fileno())
    return bad


def _check_space(folder: Path, needed: int) -> None:
    if needed > (free := shutil.disk_usage(folder).free):
        raise InputError(
            f"the decoded images take {_size(needed)} and {folder} has {_size(free)} left; make room, "
            "choose a smaller size, or name another cache folder"
        )


def _size(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"


def _pictures(listing: Listing, at_once: int) -> Iterator[Pictures]:
    """The images in consecutive groups. All rows of an archive have the same shape, so either all can be decoded or
    none.
    """
    if listing.is_archive:
        yield from read_rows(listing.source, at_once)
        return
    folder = listing.folder
    for start in range(0, len(listing), at_once):
        yield [folder / name for name in listing.names[start : start + at_once]]


def _write_piece(piece: _Piece) -> tuple[int, dict[int, str]]:
    pixels_NCHW = np.zeros((len(piece.pictures), *piece.decoding.shape), np.uint8)
    bad = {}
    for i, (picture, digest) in enumerate(zip(piece.pictures, piece.hashes, strict=True)):
        try:
            pixels_NCHW[i] = _pixels(picture, digest, piece.decoding)
        except InputError as error:
            bad[piece.first + i] = str(error)
    with piece.file.open("r+b") as file:
        file.seek(piece.begin)
        file.write(pixels_NCHW.data)
    return piece.first + len(piece.pictures), bad


def _pixels(picture: Picture, digest: str, decoding: Decoding) -> np.ndarray:
    if isinstance(picture, np.ndarray):
        return to_pixels(Image.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture), decoding)
    try:
        content = picture.read_bytes()
    except OSError:
        raise _ChangedError(picture.name) from None
    if hashlib.sha256(content).hexdigest() != digest:
        raise _ChangedError(picture.name)
    return decode(content, decoding)
