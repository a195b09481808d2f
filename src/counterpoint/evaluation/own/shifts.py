"""A user's own shift: images with the run's classes, decoded in the same way as the run's images."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch

from counterpoint.data import MappedSet
from counterpoint.data.user_images import Seen, mapped_set
from counterpoint.errors import InputError, some
from counterpoint.evaluation.image_groups import ImageGroup
from counterpoint.evaluation.logits import cell_file, labels_file
from counterpoint.evaluation.own.reading import Reader, check_names
from counterpoint.evaluation.suites import TAKEN
from counterpoint.images import DecodedImages, Decoding, Listing
from counterpoint.images.listing import picture_name, printable
from counterpoint.images.shifted import list_shifted
from counterpoint.records.codec import encode
from counterpoint.records.images import Shift, Source


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
    """Raise for a name that cannot be that of a shift."""
    check_names("a shift", names, TAKEN)


def shift_groups(shifts: Mapping[str, Path | str], reader: Reader) -> list[ImageGroup]:
    """The user's shifts of a run's images, by name. None may have images that the run's weights have learned from."""
    return [shift_group(read_shift(name, Path(path), reader)) for name, path in shifts.items()]


def read_shift(name: str, source: Path, reader: Reader) -> OwnShift:
    """The images of a folder, a .csv or an .npz file as the run would have them; a missing class gets a note."""
    found = list_shifted(source, reader.parts.train.classes)
    images = reader.open(name, found.listing, _check_not_empty, "only new images show what a shift does")
    places = found.by_severity(images.listing)
    if not places[0]:
        raise InputError(f"no picture of {source} can be used at every severity; repair those that are bad")
    for note in _notes(name, images, places, reader.parts.seen, reader.test_images_among(images)):
        reader.watcher.noted(note)
    whole = mapped_set(images, torch.arange(len(images.listing)))
    sets = tuple(whole.select(torch.tensor(of_severity)) for of_severity in places)
    return OwnShift(name, sets, _key(images, reader.decoding, places))


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
        listed_in="suites",
    )


def _itself(images: MappedSet) -> MappedSet:
    """Nothing is read before the network asks for it."""
    return images


def _check_not_empty(listing: Listing) -> None:
    if not len(listing):
        raise InputError(
            f"{listing.source} has no images; put some into folders that are called like the run's classes"
        )


def _notes(
    name: str, images: DecodedImages, places: Sequence[Sequence[int]], seen: Seen | None, tested: Mapping[int, str]
) -> Iterator[str]:
    listing, used = images.listing, places[0]
    if lost := len(listing) - sum(map(len, places)):
        yield f"{name}: left out: {lost:,} more, since the picture is bad at another severity"
    labels = {listing.labels[image] for image in used}
    if missing := [printable(one) for label, one in enumerate(listing.classes) if label not in labels]:
        yield f"{name} has no images of {some(missing)}: its figures say nothing about these classes"
    unchanged = [image for of_severity in places for image in of_severity if image in tested]
    if unchanged:
        one = unchanged[0]
        yield (
            f"{name}: {len(unchanged):,} of {sum(map(len, places)):,} pictures are test images of the run without any "
            f"change (such as {listing.shown(one)}, the same image as {tested[one]}): they show no shift"
        )
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
