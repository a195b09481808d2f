"""The fingerprint of each image: the SHA-256 of its file, or of its row's pixels.

Hashing every byte at each start would take minutes for a large set. So an index remembers each hash together with the
file's size, its time of modification and its time of change. A file that still has all three is not read again. That
goes wrong only if somebody changes a file and sets the clock back.
"""

import hashlib
import json
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.images.archives import read_rows
from counterpoint.images.decode import VERSION
from counterpoint.images.listing import BadFile, Listing
from counterpoint.storage.files import read_json, write_atomically
from counterpoint.threads import in_threads
from counterpoint.watching import Watcher

Stamp = tuple[int, int, int]
"""A file's size, and when its content and its entry were last changed, in nanoseconds."""

_AT_ONCE = 64
_SETTLED_NS = 2_000_000_000
"""A file may change twice within one tick of the disk's clock. What is younger than this is hashed again next time."""


@dataclass
class Index:
    """What is remembered about a source: the hash of each image, and which contents cannot be decoded and why."""

    hashes: dict[str, tuple[Stamp, str]] = field(default_factory=dict)
    bad: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each way of decoding, the reason for each hash."""


def read_index(path: Path) -> Index:
    """The index, or an empty one if there is none that can be used. The index only saves time."""
    try:
        found = read_json(path)
        if found["version"] != VERSION:
            return Index()
        hashes = {
            name: ((size, modified, changed), digest)
            for name, (size, modified, changed, digest) in found["hashes"].items()
        }
        return Index(hashes, found["bad"])
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return Index()


def write_index(path: Path, index: Index) -> None:
    """Leave out files that changed just now: they may change again within the same tick of the clock."""
    settled = time.time_ns() - _SETTLED_NS
    hashes = {name: (*stamp, digest) for name, (stamp, digest) in index.hashes.items() if max(stamp[1:]) < settled}
    # Not as UTF-8: a file's name may hold bytes that are no text.
    write_atomically(path, json.dumps({"version": VERSION, "hashes": hashes, "bad": index.bad}).encode("ascii"))


def fingerprint(listing: Listing, index: Index, watcher: Watcher) -> tuple[dict[str, str], list[BadFile]]:
    """The hash of each image by its name, and the files that cannot be read. The index is brought up to date."""
    stamps, bad = _stamps(listing)
    known = {name: index.hashes[name] for name, stamp in stamps.items() if index.hashes.get(name, (None,))[0] == stamp}
    missing = [name for name in stamps if name not in known]
    done = 0
    for hashed in _hash_rows(listing) if listing.is_archive and missing else _hash_files(listing.folder, missing):
        for name, outcome in hashed.items():
            if isinstance(outcome, BadFile):
                bad.append(outcome)
            else:
                known[name] = (stamps[name], outcome)
        done += len(hashed)
        watcher.counted("reading images", done, len(missing))
    index.hashes = known
    return {name: digest for name, (_, digest) in known.items()}, bad


def _stamps(listing: Listing) -> tuple[dict[str, Stamp], list[BadFile]]:
    if listing.is_archive:
        return dict.fromkeys(listing.names, _stamp(os.stat(listing.source))), []
    folder, stamps, bad = listing.folder, {}, []
    for name in listing.names:
        try:
            found = os.stat(os.path.join(folder, name))
        except OSError as error:
            bad.append(BadFile(name, f"cannot be read ({error.strerror})"))
            continue
        if stat.S_ISREG(found.st_mode):
            stamps[name] = _stamp(found)
        else:
            bad.append(BadFile(name, "is no ordinary file"))
    return stamps, bad


def _stamp(found: os.stat_result) -> Stamp:
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _hash_files(folder: Path, names: list[str]) -> Iterator[dict[str, str | BadFile]]:
    """In threads, because hashing and reading release Python's lock."""
    pieces = (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))
    yield from in_threads(lambda piece: {name: _hash_file(folder, name) for name in piece}, pieces)


def _hash_file(folder: Path, name: str) -> str | BadFile:
    try:
        with open(folder / name, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return BadFile(name, f"cannot be read ({error.strerror})")


def _hash_rows(listing: Listing) -> Iterator[dict[str, str | BadFile]]:
    start = 0
    for rows_NHWC in read_rows(listing.source, _AT_ONCE):
        yield {f"[{start + i}]": hashlib.sha256(row.data).hexdigest() for i, row in enumerate(rows_NHWC)}
        start += len(rows_NHWC)
