"""A user's images, decoded once and kept in a file that is read as if it were in memory.

CACHE/KEY/           decoded images (stored.py). It may be removed when nothing reads it: it is made again.
CACHE/sources/ID/    for each path that images were read from: its index, and what is being decoded just now.
"""

import hashlib
import os
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterpoint.errors import InputError
from counterpoint.images.building import decode_all
from counterpoint.images.decode import Decoding
from counterpoint.images.duplicates import check_duplicates
from counterpoint.images.fingerprints import Index, fingerprint, read_index, write_index
from counterpoint.images.listing import BadFile, Listing, check_classes, refuse_bad
from counterpoint.images.sources import list_images
from counterpoint.images.stored import PIXELS, finish, image_key, read
from counterpoint.processes import count_workers
from counterpoint.storage.folders import data_root
from counterpoint.storage.locks import in_turn
from counterpoint.watching import SILENT, Watcher

_REMEDY = "repair or remove them, or leave them out with --skip-bad (skip_bad=True)"


@dataclass(frozen=True, eq=False)
class DecodedImages:
    """The images of a source that can be used, and their pixels in a file.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint.images import Decoding, open_images
    >>> pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)
    >>> np.savez("mine.npz", images=pixels, labels=[0, 1, 0, 1])
    >>> open_images(Path("mine.npz"), Decoding(size=8), cache=Path("cache")).listing.labels
    (0, 1, 0, 1)
    """

    listing: Listing
    hashes: tuple[str, ...]
    """Each image's content."""
    pixels_RCHW: NDArray[np.uint8]
    """The file's rows, which take no memory of their own. Writing to them changes what this process sees alone."""
    rows_N: NDArray[np.int64]
    """Where each image lies in the file. The same images may lie elsewhere in another cache."""
    key: str
    bad: tuple[BadFile, ...]
    """What was left out."""

    def labelled(self, images: Iterable[int]) -> list[tuple[str, int]]:
        """The content and the label of each of these images."""
        return [(self.hashes[image], self.listing.labels[image]) for image in images]


@dataclass(frozen=True)
class _Usable:
    """The images that are not known to be bad, and those that are."""

    listing: Listing
    hashes: tuple[str, ...]
    bad: tuple[BadFile, ...]

    def without(self, reasons: dict[str, str]) -> "_Usable":
        """Leave out the contents that have a reason not to be used."""
        kept = [image for image, content in enumerate(self.hashes) if content not in reasons]
        named = zip(self.listing.names, self.hashes, strict=True)
        bad = [BadFile(name, reasons[content]) for name, content in named if content in reasons]
        return _Usable(self.listing.select(kept), tuple(self.hashes[image] for image in kept), (*self.bad, *bad))


def open_images(
    source: Path | str,
    decoding: Decoding,
    *,
    cache: Path | str | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    watcher: Watcher = SILENT,
) -> DecodedImages:
    """Decode the images of a folder, a .csv or an .npz file with `workers` processes, unless a cache has them.

    `cache` is the folder that keeps the decoded images (default: `images` in the data folder). If some files are not
    readable images, one error lists them all; with `skip_bad` they are left out.

    >>> from pathlib import Path
    >>> import numpy as np
    >>> from counterpoint.images import Decoding, open_images
    >>> pixels = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), np.uint8)
    >>> np.savez("mine.npz", images=pixels, labels=[0, 1, 0, 1])
    >>> open_images(Path("mine.npz"), Decoding(size=16), cache=Path("cache")).pixels_RCHW.shape
    (4, 3, 16, 16)
    """
    return open_listed(
        list_images(source),
        decoding,
        check_classes,
        cache=Path(cache) if cache else None,
        skip_bad=skip_bad,
        workers=workers,
        watcher=watcher,
    )


def open_listed(
    listing: Listing,
    decoding: Decoding,
    check: Callable[[Listing], None],
    *,
    cache: Path | None = None,
    skip_bad: bool = False,
    workers: int | None = None,
    watcher: Watcher = SILENT,
) -> DecodedImages:
    """The same for a list of images. `check` raises if those that can be decoded are not enough."""
    workers, source = count_workers(workers), listing.source
    cache = cache or data_root() / "images"
    desk = cache / "sources" / hashlib.sha256(os.fsencode(os.path.realpath(source))).hexdigest()[:16]
    try:
        with in_turn(desk, lambda: watcher.noted(f"waiting for another process that reads {source}")):
            usable = _decode_unless_done(listing, decoding, cache, desk, workers, watcher)
    except OSError as error:
        raise InputError(f"the cache {cache} cannot be used ({error}); name another folder") from None
    if usable.bad and not skip_bad:
        raise refuse_bad(source, usable.bad, _REMEDY)
    check(usable.listing)
    key = image_key(usable.listing, usable.hashes, decoding)
    pixels_RCHW, rows_N = read(cache / key, len(usable.listing), decoding)
    return DecodedImages(usable.listing, usable.hashes, pixels_RCHW, rows_N, key, usable.bad)


def _decode_unless_done(
    listing: Listing, decoding: Decoding, cache: Path, desk: Path, workers: int, watcher: Watcher
) -> _Usable:
    """The images that can be used, all of which have been decoded."""
    building, index_file = desk / "building", desk / "index.json"
    shutil.rmtree(building, ignore_errors=True)  # left behind by a process that was killed
    index = read_index(index_file)
    bad = index.bad.setdefault(str(decoding), {})
    usable = _hash(listing, index, index_file, watcher).without(bad)
    check_duplicates(usable.listing, usable.hashes)
    if not len(usable.listing) or (cache / image_key(usable.listing, usable.hashes, decoding)).is_dir():
        return usable
    building.mkdir(parents=True)
    reasons = decode_all(usable.listing, usable.hashes, decoding, building / PIXELS, workers, watcher)
    if reasons:
        bad |= {usable.hashes[image]: reason for image, reason in reasons.items()}
        write_index(index_file, index)
    _keep(building, usable, bad, decoding, cache)
    return usable.without(bad)


def _keep(building: Path, decoded: _Usable, bad: dict[str, str], decoding: Decoding, cache: Path) -> None:
    """Give the decoded images their place, unless none is good or the good ones were decoded before."""
    rows = [image for image, content in enumerate(decoded.hashes) if content not in bad]
    good = decoded.without(bad)
    folder = cache / image_key(good.listing, good.hashes, decoding)
    if rows and not folder.is_dir():
        finish(building, folder, rows, good.listing.source, decoding)
    shutil.rmtree(building, ignore_errors=True)


def _hash(listing: Listing, index: Index, index_file: Path, watcher: Watcher) -> _Usable:
    before = index.hashes
    hashes, unread = fingerprint(listing, index, watcher)
    if index.hashes != before:
        write_index(index_file, index)
    good = listing.select([image for image, name in enumerate(listing.names) if name in hashes])
    return _Usable(good, tuple(hashes[name] for name in good.names), (*listing.bad, *unread))
