"""Shifted images of a run's classes: in class folders, at several severities or at none, in a .csv or an .npz file."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from unicodedata import normalize

from counterpoint.errors import InputError, some, unknown
from counterpoint.images.folders import class_name, images_below, look_into, strays
from counterpoint.images.listing import PARTS, BadFile, Listing, no_class_folders, printable
from counterpoint.images.sources import list_file

_NUMBER = re.compile(r"[1-9][0-9]{0,3}")


@dataclass(frozen=True)
class ShiftedListing:
    """Images under one shift. The labels of the listing are places in the run's classes."""

    listing: Listing
    severities: int
    """How many severities there are, each in a folder with its number; 0 if there are none."""

    def by_severity(self, listing: Listing) -> list[list[int]]:
        """For each severity its images among those that could be decoded, in the same order in each.

        A picture that is bad at one severity is left out of all.
        """
        if not self.severities:
            return [list(range(len(listing)))]
        complete = [images for images in _pictures(listing).values() if len(images) == self.severities]
        return [[images[severity] for images in complete] for severity in range(1, self.severities + 1)]


def list_shifted(source: Path, classes: Sequence[str]) -> ShiftedListing:
    """The shifted images of a folder, a .csv or an .npz file. No image is opened yet.

    A folder has a folder per class; or the folders 1, 2, 3, … of its severities, each with a folder per class and with
    the same pictures. Folders with such names are severities if no class has such a name. If a class has, they are
    severities only if each of them holds class folders and nothing else.
    """
    if not source.is_dir():
        return ShiftedListing(_of_classes(list_file(source), classes), 0)
    top = look_into(source, "")
    if not top.folders:
        raise no_class_folders(source, classes)
    severities = _severity_folders(source, top.folders, classes)
    bad = [*top.bad, *strays(top.files)]
    folders = top.folders
    if severities:
        inside = [look_into(source, severity) for severity in severities]
        bad += [one for content in inside for one in (*content.bad, *strays(content.files))]
        folders = [folder for content in inside for folder in content.folders]
    found = ShiftedListing(_of_folders(source, folders, classes, bad), len(severities))
    if severities:
        _check_same_pictures(found)
    return found


def _of_folders(source: Path, folders: Sequence[str], classes: Sequence[str], bad: list[BadFile]) -> Listing:
    number = {name: k for k, name in enumerate(classes)}
    names: list[str] = []
    labels: list[int] = []
    for folder in folders:
        name = class_name(source, folder)
        if name not in number:
            raise _unknown_class(source, f"the folder {printable(folder)!r}", name, classes)
        images = images_below(source, folder)
        names += images.files
        labels += [number[name]] * len(images.files)
        bad += images.bad
    return Listing(source, tuple(names), tuple(labels), None, tuple(classes), tuple(bad))


def _severity_folders(source: Path, folders: Sequence[str], classes: Sequence[str]) -> list[str]:
    """The folders of the severities from 1 on; none where the folders are classes."""
    if not folders or not all(_NUMBER.fullmatch(folder) for folder in folders):
        return []
    if set(folders) & set(classes) and not all(_holds_classes_alone(source, folder, classes) for folder in folders):
        return []
    wanted = [str(number) for number in range(1, len(folders) + 1)]
    if lacking := [number for number in wanted if number not in folders]:
        raise InputError(
            f"{source} has the severities {', '.join(sorted(folders, key=int))} and lacks {lacking[0]}; severities "
            "count from 1 without gaps: rename their folders"
        )
    return wanted


def _holds_classes_alone(source: Path, folder: str, classes: Sequence[str]) -> bool:
    content = look_into(source, folder)
    names = {name.rpartition("/")[2] for name in content.folders}
    return bool(names) and names <= set(classes) and not content.files


def _of_classes(listing: Listing, classes: Sequence[str]) -> Listing:
    """The list with the run's classes in place of those that the file names."""
    source = listing.source
    if listing.parts is not None:
        raise InputError(f"{source} says to which part each image belongs, but a shift has no parts; leave part out")
    number = {name: k for k, name in enumerate(classes)}
    for label in sorted(set(listing.labels)):
        if listing.classes[label] not in number:
            raise _unknown_class(source, "a label", listing.classes[label], classes)
    return replace(
        listing,
        labels=tuple(number[listing.classes[label]] for label in listing.labels),
        classes=tuple(classes),
    )


def _unknown_class(source: Path, what: str, name: str, classes: Sequence[str]) -> InputError:
    known = unknown("class", printable(name), [printable(one) for one in classes])
    if normalize("NFC", name) in {normalize("NFC", one) for one in classes}:
        return InputError(
            f"{what} of {source}: the class {printable(name)!r} looks like one of the run, but Unicode writes it in "
            "other characters (NFC or NFD); rename it to what the run's images have"
        )
    advice = "shifted images must have the run's classes: rename it, or leave it out"
    if name in PARTS and (source / name).is_dir():
        advice = f"a shift has no parts: name {source / name} itself"
    elif _NUMBER.fullmatch(name) and (source / name).is_dir():
        advice = (
            "a folder of severities holds the folders 1, 2, 3, … and no others, and each of these "
            "holds only class folders"
        )
    return InputError(f"{what} of {source}: {known}; {advice}")


def _pictures(listing: Listing) -> dict[str, dict[int, int]]:
    """The pictures in order, by their names without the severity and the ending: the image of each at each severity."""
    found: dict[str, dict[int, int]] = {}
    for image, name in enumerate(listing.names):
        severity, _, rest = name.partition("/")
        other = found.setdefault(os.path.splitext(rest)[0], {}).setdefault(int(severity), image)
        if other != image:
            raise InputError(
                f"{listing.shown(other)} and {listing.shown(image)} of {listing.source} differ only in their endings, "
                "but the severities are matched by the names of the pictures; rename one of them"
            )
    return dict(sorted(found.items()))


def _check_same_pictures(shifted: ShiftedListing) -> None:
    """Raise unless all severities have the same pictures, because a picture with all its severities counts once."""
    source, pictures = shifted.listing.source, _pictures(shifted.listing)
    for severity in range(2, shifted.severities + 1):
        lacks = {
            one: [printable(name) for name, images in pictures.items() if other in images and one not in images]
            for one, other in ((1, severity), (severity, 1))
        }
        if words := "; ".join(f"{one} lacks {some(names, most=3)}" for one, names in lacks.items() if names):
            raise InputError(
                f"the severities of {source} do not have the same pictures ({words}); give each severity the same "
                f"names in the same classes, or name each as a shift of its own, such as NAME-1={source / '1'}"
            )
