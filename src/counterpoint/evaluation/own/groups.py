"""A user's own shifts and outside images as groups of images, decoded in the same way as the run's images.

A shift has the run's classes. Outside images are of none of them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch

from counterpoint.data import MappedSet
from counterpoint.data.user_images import Seen, hash_of, mapped_set
from counterpoint.errors import InputError, shown, some
from counterpoint.evaluation.image_groups import OUTSIDE, ImageGroup
from counterpoint.evaluation.logits import cell_file, labels_file, outside_file
from counterpoint.evaluation.own.reading import Reader, check_names, refuse_known
from counterpoint.evaluation.suites import TAKEN
from counterpoint.images import DecodedImages, Listing
from counterpoint.images.listing import picture_name, printable
from counterpoint.images.shifted import list_shifted
from counterpoint.images.sources import list_unlabelled
from counterpoint.metrics.groups import groups_of, recorded
from counterpoint.records.codec import encode
from counterpoint.records.images import OutsideImages, Shift, Source


def check_own(shifts: Mapping[str, Path | str] | None, outside: Mapping[str, Path | str] | None, dataset: str) -> None:
    """Raise unless both name each path, under a name that a set of its kind can have."""
    for argument, given in (("shifts", shifts), ("outside", outside)):
        if not isinstance(given, Mapping | None):
            raise InputError(f"{argument} is {shown(repr(given))}; it must name each path, such as {{'night': path}}")
    check_shift_names(shifts or ())
    check_outside_names(outside or (), dataset)


def check_shift_names(names: Iterable[str]) -> None:
    """Raise for a name that cannot be that of a shift."""
    check_names("a shift", names, TAKEN)


def check_outside_names(names: Iterable[str], dataset: str) -> None:
    """Raise for a name that cannot be that of outside images. The other CIFAR is a set of its own, and has its name."""
    check_names("outside images", names, [OUTSIDE[dataset].name] if dataset in OUTSIDE else [])


def own_groups(
    shifts: Mapping[str, Path | str], outside: Mapping[str, Path | str], reader: Reader
) -> Iterator[ImageGroup]:
    for name, path in shifts.items():
        yield own_shift_group(name, Path(path), reader)
    for name, path in outside.items():
        yield own_outside_group(name, Path(path), reader)


def own_shift_group(name: str, source: Path, reader: Reader) -> ImageGroup:
    """The images of a folder, a .csv or an .npz file at each severity, or all of them; a missing class gets a note.

    At each severity they are the same pictures, in the same order. None may be one that the run's weights have learned
    from. Nothing is fitted on a shift, so its images are test images.
    """
    found = list_shifted(source, reader.parts.train.classes)
    images = reader.open(name, found.listing, _check_not_empty, "only new images show what a shift does")
    places = found.by_severity(images.listing)
    if not places[0]:
        raise InputError(f"no picture of {source} can be used at every severity; repair those that are bad")
    for note in _notes(name, images, places, reader.parts.seen, reader.test_images_among(images)):
        reader.watcher.noted(note)
    whole = mapped_set(images, torch.arange(len(images.listing)))
    sets = {severity: whole.select(torch.tensor(rows)) for severity, rows in enumerate(places, start=1)}
    key = hash_of(reader.decoding, images.listing.classes, [images.labelled(of_severity) for of_severity in places])
    together = groups_of(sets[1].groups_N, len(sets[1]))  # a source with groups has no severities
    return ImageGroup(
        name,
        encode(Shift(Source("own", key=key), len(sets[1]), "test", (name,), tuple(sets), recorded(together))),
        {cell_file(name, name, severity): partial(_itself, of_severity) for severity, of_severity in sets.items()},
        (labels_file(name), sets[1].labels_N),
        np.float16,
        len(sets[1]),
        together,
        listed_in="suites",
    )


def own_outside_group(name: str, source: Path, reader: Reader) -> ImageGroup:
    """The pictures of a folder at any depth, or those of an .npz file."""
    reason = "it belongs to a class of the run, and outside images belong to none"
    images = reader.open(name, list_unlabelled(source), _check_any, reason)
    refuse_known(
        images, reader.test_images_among(images), "is a test image of the run", f"leave it out, since {reason}"
    )
    about = OutsideImages(len(images.listing), hash_of(reader.decoding, images.hashes))
    pixels = mapped_set(images, torch.arange(about.images))
    return ImageGroup(
        name,
        encode(about),
        {outside_file(name): partial(_itself, pixels)},
        None,
        np.float32,  # in float16, rounding would let the members seem to differ a little more than on clean images
        about.images,
        listed_in="outside",
    )


def _itself(images: MappedSet) -> MappedSet:
    """Nothing is read before the network asks for it."""
    return images


def _check_not_empty(listing: Listing) -> None:
    if not len(listing):
        raise InputError(
            f"{listing.source} has no images; put some into folders that are called like the run's classes"
        )


def _check_any(listing: Listing) -> None:
    if not len(listing):
        raise InputError(f"{listing.source} has no pictures; name a folder that has some, at any depth")


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
