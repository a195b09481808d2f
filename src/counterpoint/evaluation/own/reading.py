"""A user's own images beside those of a run: decoded in the same way, and none that the run has seen."""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

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
        seen, _ = self._known
        refuse_known(images, _among(self._content(images), seen), by, advice)
        for folder, contents in (self.earlier or {}).items():
            by = f"{folder}, whose weights the run started from, was trained on"
            refuse_known(images, _among(images.hashes, contents), by, advice)
        if images.bad:
            self.watcher.noted(f"{name}: left out: {some([printable(bad.name) for bad in images.bad])}")
        return images

    def test_images_among(self, images: DecodedImages) -> dict[int, str]:
        """The images that are test images of the run, by their places, with the names that they have there."""
        _, tested = self._known
        return _among(self._content(images), tested)

    def _content(self, images: DecodedImages) -> Iterator[str]:
        """A hash of each image: of its file or, for a data set that has a name and no files to compare, its pixels."""
        if self.parts.seen is not None:
            return iter(images.hashes)
        return (_hash(images.pixels_RCHW[row]) for row in images.rows_N)

    @cached_property
    def _known(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """The images that the weights have learned from, or that temperatures were fitted on; and the test images.

        Ten test images of CIFAR-100 are among its training images too. These do not count as seen.
        """
        if self.parts.seen is not None:
            return self.parts.seen.contents, self.parts.tested
        seen, tested = _pixels(self.parts, "train", "validation"), _pixels(self.parts, "test")
        return {content: name for content, name in seen.items() if content not in tested}, tested


def refuse_known(images: DecodedImages, known: Mapping[int, str], by: str, advice: str) -> None:
    """Raise if there are images that are known, by their places, under these names. `by` says what knows them."""
    if known:
        image, other = next(iter(known.items()))
        more = f" ({len(known):,} such images in all)" if len(known) > 1 else ""
        raise InputError(
            f"{images.listing.shown(image)} of {images.listing.source} is the same image as {other}, which {by}{more}; "
            f"{advice}"
        )


def _among(hashes: Iterable[str], known: Mapping[str, str]) -> dict[int, str]:
    return {image: known[content] for image, content in enumerate(hashes) if content in known}


def _pixels(parts: Parts, *names: Literal["train", "validation", "test"]) -> dict[str, str]:
    """The images of these parts of a data set that has a name, by the hashes of their pixels."""
    return {
        _hash(pixels_CHW): f"image {number} of {parts.name}'s {'test' if name == 'test' else 'training'} images"
        for name in names
        if (part := getattr(parts, name)) is not None
        for number, pixels_CHW in zip(part.numbers_N.tolist(), part.images_NCHW.numpy(), strict=True)
    }


def _hash(pixels_CHW: np.ndarray) -> str:
    return hashlib.sha256(pixels_CHW.tobytes()).hexdigest()
