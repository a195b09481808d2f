"""A user's own images beside those of a run: decoded in the same way, and none that the run has seen."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from counterpoint.data import Parts
from counterpoint.errors import InputError, some
from counterpoint.images import DecodedImages, Decoding, Listing
from counterpoint.images.cache import open_listed
from counterpoint.images.listing import printable
from counterpoint.runs.folder import Run
from counterpoint.training.run_images import learned_before
from counterpoint.watching import SILENT, Watcher

_NAME = re.compile(r"\w[\w-]{0,59}")


def check_names(what: str, names: Iterable[str], taken: Collection[str]) -> None:
    """Raise for a name that cannot be that of a file, or that another set of images has. `what` is a set's kind."""
    before: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name) or name.casefold() in taken:
            none_of = f", and is none of {', '.join(sorted(taken))}" if taken else ""
            raise InputError(
                f"{name!r} cannot be the name of {what}; a name may have up to 60 letters, digits, - and "
                f"_, does not begin with -{none_of}"
            )
        if (other := before.setdefault(name.casefold(), name)) != name:
            raise InputError(f"the names {other!r} and {name!r} of {what} differ in capitals only; choose others")


@dataclass(frozen=True, eq=False)
class Reader:
    """Opens a user's own images as a run would have them. An image that the run has seen is refused.

    `earlier` has the images that other runs have seen whose weights this one started from.
    """

    parts: Parts
    cache: Path | None = None
    earlier: Mapping[Path, Mapping[str, str]] | None = None
    skip_bad: bool = False
    watcher: Watcher = SILENT

    @classmethod
    def of(cls, run: Run, parts: Parts, root: Path, *, skip_bad: bool, watcher: Watcher) -> "Reader":
        return cls(parts, root / "images", learned_before(run, root, watcher), skip_bad, watcher)

    @property
    def decoding(self) -> Decoding:
        channels, height, _ = self.parts.train.image_shape
        return Decoding(height, grey=channels == 1)

    def open(self, name: str, listing: Listing, check: Callable[[Listing], None], reason: str) -> DecodedImages:
        """The decoded images of a list. `check` raises if those that can be used are not enough, and `reason` says why
        an image that was seen is to be left out.
        """
        images = open_listed(
            listing, self.decoding, check, cache=self.cache, skip_bad=self.skip_bad, watcher=self.watcher
        )
        advice = f"leave it out, since {reason}"
        by = "the run was trained or validated on"
        if self.parts.seen is not None:
            _check_unseen(images, images.hashes, self.parts.seen.contents, by, advice)
        else:
            _check_unseen(images, _pixel_hashes(images), _seen_pixels(self.parts), by, advice)
        for folder, contents in (self.earlier or {}).items():
            by = f"{folder}, whose weights the run started from, was trained on"
            _check_unseen(images, images.hashes, contents, by, advice)
        if images.bad:
            self.watcher.noted(f"{name}: left out: {some([printable(bad.name) for bad in images.bad])}")
        return images


def _check_unseen(images: DecodedImages, hashes: Iterable[str], seen: Mapping[str, str], by: str, advice: str) -> None:
    """Raise for an image that the run was trained on, or that temperatures were fitted on: it is no new image.

    `seen` has the name of each such image, by its hash. `by` says what has seen them.
    """
    pairs = [(image, seen[content]) for image, content in enumerate(hashes) if content in seen]
    if pairs:
        image, other = pairs[0]
        more = f" ({len(pairs):,} such images in all)" if len(pairs) > 1 else ""
        raise InputError(
            f"{images.listing.shown(image)} of {images.listing.source} is the same image as {other}, which {by}{more}; "
            f"{advice}"
        )


def _pixel_hashes(images: DecodedImages) -> Iterator[str]:
    return (_hash(images.pixels_RCHW[row]) for row in images.rows_N)


def _seen_pixels(parts: Parts) -> dict[str, str]:
    """The training and validation images of a data set that has a name, by their pixels: there are no files to compare.

    Ten test images of CIFAR-100 are among its training images too. These are not refused.
    """
    seen = {
        _hash(pixels_CHW): f"image {number} of {parts.name}'s training images"
        for part in (parts.train, parts.validation)
        if part is not None
        for number, pixels_CHW in zip(part.numbers_N.tolist(), part.images_NCHW.numpy(), strict=True)
    }
    tested = {_hash(pixels_CHW) for pixels_CHW in parts.test.images_NCHW.numpy()} if parts.test is not None else set()
    return {content: name for content, name in seen.items() if content not in tested}


def _hash(pixels_CHW: np.ndarray) -> str:
    return hashlib.sha256(pixels_CHW.tobytes()).hexdigest()
