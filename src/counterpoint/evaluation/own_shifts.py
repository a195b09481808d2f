"""A user's own shift: images with the run's classes, decoded in the same way as the run's images."""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from counterpoint.data import MappedSet, Parts
from counterpoint.data.user_images import Seen, mapped_set
from counterpoint.errors import InputError, some
from counterpoint.evaluation.image_groups import ImageGroup
from counterpoint.evaluation.logits import cell_file, labels_file
from counterpoint.evaluation.suites import TAKEN
from counterpoint.images import DecodedImages, Decoding, Listing
from counterpoint.images.cache import open_listed
from counterpoint.images.listing import picture_name, printable
from counterpoint.images.shifted import list_shifted
from counterpoint.records.codec import encode
from counterpoint.records.images import Shift, Source
from counterpoint.runs.folder import Run
from counterpoint.training.run_images import learned_before
from counterpoint.watching import SILENT, Watcher

_NAME = re.compile(r"\w[\w-]{0,59}")


@dataclass(frozen=True, eq=False)
class OwnShift:
    """Decoded images under a shift. At each severity they are the same pictures, in the same order."""

    name: str
    sets: tuple[MappedSet, ...]
    """One for each severity, or one in all."""
    key: str
    """A hash of what the images are: contents and labels in order, the classes, the decoding."""

    @property
    def shift(self) -> Shift:
        """The description that results keep. Nothing is fitted on a shift, so its images are test images."""
        severities = tuple(range(1, len(self.sets) + 1))
        return Shift(Source("own", key=self.key), len(self.sets[0]), "test", (self.name,), severities)


def check_shift_names(names: Iterable[str]) -> None:
    """Raise for a name that cannot be that of a folder, or that another set of images has."""
    before: dict[str, str] = {}
    for name in names:
        if not _NAME.fullmatch(name) or name.casefold() in TAKEN:
            raise InputError(
                f"{name!r} cannot be the name of a shift; a name may have up to 60 letters, digits, - and "
                f"_, does not begin with -, and is none of {', '.join(sorted(TAKEN))}"
            )
        if (other := before.setdefault(name.casefold(), name)) != name:
            raise InputError(f"the shifts {other!r} and {name!r} differ in capitals only; give them other names")


def shift_groups(
    shifts: Mapping[str, Path | str],
    run: Run,
    parts: Parts,
    root: Path,
    *,
    skip_bad: bool = False,
    watcher: Watcher = SILENT,
) -> list[ImageGroup]:
    """The user's shifts of a run's images, by name. None may have images that the run's weights have learned from."""
    earlier, cache = learned_before(run, root, watcher), root / "images"
    return [
        shift_group(read_shift(name, Path(path), parts, cache, earlier=earlier, skip_bad=skip_bad, watcher=watcher))
        for name, path in shifts.items()
    ]


def read_shift(
    name: str,
    source: Path,
    parts: Parts,
    cache: Path | None = None,
    *,
    earlier: Mapping[Path, Mapping[str, str]] | None = None,
    skip_bad: bool = False,
    watcher: Watcher = SILENT,
) -> OwnShift:
    """The images of a folder, a .csv or an .npz file as the run whose `parts` these are would have them.

    Images that the run has seen are refused, and those that `earlier` runs have seen whose weights it started from. A
    class may be missing, with a note.
    """
    found, decoding = list_shifted(source, parts.train.classes), _decoding(parts)
    images = open_listed(found.listing, decoding, _check_not_empty, cache=cache, skip_bad=skip_bad, watcher=watcher)
    if parts.seen is not None:
        _check_unseen(images, images.hashes, parts.seen.contents)
    else:
        _check_unseen(images, _pixel_hashes(images), _seen_pixels(parts))
    for folder, contents in (earlier or {}).items():
        _check_unseen(images, images.hashes, contents, f"{folder}, whose weights the run started from, was trained on")
    places = found.by_severity(images.listing)
    if not places[0]:
        raise InputError(f"no picture of {source} can be used at every severity; repair those that are bad")
    for note in _notes(name, images, places, parts.seen):
        watcher.noted(note)
    whole = mapped_set(images, torch.arange(len(images.listing)))
    sets = tuple(whole.select(torch.tensor(of_severity)) for of_severity in places)
    return OwnShift(name, sets, _key(images, decoding, places))


def shift_group(own: OwnShift) -> ImageGroup:
    """The images at each severity, or all of them."""
    return ImageGroup(
        own.name,
        encode(own.shift),
        {
            cell_file(own.name, own.name, severity): partial(_itself, images)
            for severity, images in enumerate(own.sets, start=1)
        },
        (labels_file(own.name), own.sets[0].labels_N),
        np.float16,
        len(own.sets[0]),
        own=True,
    )


def _itself(images: MappedSet) -> MappedSet:
    """Nothing is read before the network asks for it."""
    return images


def _decoding(parts: Parts) -> Decoding:
    channels, height, _ = parts.train.image_shape
    return Decoding(height, grey=channels == 1)


def _check_not_empty(listing: Listing) -> None:
    if not len(listing):
        raise InputError(
            f"{listing.source} has no images; put some into folders that are called like the run's classes"
        )


def _check_unseen(
    images: DecodedImages,
    hashes: Iterable[str],
    seen: Mapping[str, str],
    by: str = "the run was trained or validated on",
) -> None:
    """Raise for an image that the run was trained on, or that temperatures were fitted on: it is no new image.

    `seen` has the name of each such image, by its hash. `by` says what has seen them.
    """
    pairs = [(image, seen[content]) for image, content in enumerate(hashes) if content in seen]
    if pairs:
        image, other = pairs[0]
        more = f" ({len(pairs):,} such images in all)" if len(pairs) > 1 else ""
        raise InputError(
            f"{images.listing.shown(image)} of {images.listing.source} is the same image as {other}, which {by}{more}; "
            "leave it out, since only new images show what a shift does"
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


def _notes(name: str, images: DecodedImages, places: Sequence[Sequence[int]], seen: Seen | None) -> Iterator[str]:
    listing, used = images.listing, places[0]
    if images.bad:
        yield f"{name}: left out: {some([printable(bad.name) for bad in images.bad])}"
    if lost := len(listing) - sum(map(len, places)):
        yield f"{name}: left out: {lost:,} more, since the picture is bad at another severity"
    labels = {listing.labels[image] for image in used}
    if missing := [printable(one) for label, one in enumerate(listing.classes) if label not in labels]:
        yield f"{name} has no images of {some(missing)}: its figures say nothing about these classes"
    called = [image for image in used if seen is not None and picture_name(listing, image) in seen.pictures]
    if called:
        yield (
            f"{name}: {len(called):,} of {len(used):,} pictures have the names of images that the run "
            f"was trained or validated on, such as {listing.shown(called[0])}; if they show the same "
            "scenes, the figures look better than they are"
        )


def _key(images: DecodedImages, decoding: Decoding, places: Sequence[Sequence[int]]) -> str:
    listing = images.listing
    contents = [[(images.hashes[image], listing.labels[image]) for image in of_severity] for of_severity in places]
    values = json.dumps([str(decoding), listing.classes, contents])
    return hashlib.sha256(values.encode()).hexdigest()[:16]
