"""What a user's images are: a list with a label for each and, where the source says so, the part it belongs to."""

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from counterpoint.errors import InputError, some

PARTS = ("train", "val", "test")
_WORDS_FOR_PARTS = {*PARTS, "training", "valid", "validation", "dev", "testing"}
_OF_A_SYSTEM = ("thumbs.db", "desktop.ini", "__macosx")  # a Mac puts the last into every .zip file
SHOWN = 10
"""How many bad files a message names."""


def check_names_no_parts(what: str, values: Iterable[str]) -> None:
    """Raise if the values say in other words what part each image is in: parts drawn at random would ignore it, and a
    network could be tested on pictures much like those that it was trained on. `what` names the column or the array.
    """
    known = {value.strip() for value in values}
    words = {value.lower() for value in known}
    if len(words) > 1 and words & {"train", "training"} and words <= _WORDS_FOR_PARTS:
        raise InputError(
            f"{what} has the values {', '.join(sorted(known))}; if it says which part each image is in, call it part "
            "and its values train, val and test; otherwise remove it"
        )


class BadFile(NamedTuple):
    """A file or row that cannot be used as an image, and the reason.

    >>> from counterpoint.images import BadFile
    >>> BadFile("cat/3.jpg", "it is empty").reason
    'it is empty'
    """

    name: str
    reason: str


@dataclass(frozen=True)
class Listing:
    """The images of a source, in their order.

    >>> from pathlib import Path
    >>> from counterpoint.images import Listing
    >>> len(Listing(Path("photos"), ("cat/1.png", "dog/2.png"), (0, 1), None, ("cat", "dog")))
    2
    """

    source: Path
    """What the user named: a folder, a .csv or an .npz file."""
    names: tuple[str, ...]
    """Each image's path as the source writes it, relative to `folder`; of an .npz file its row, such as "[3]"."""
    labels: tuple[int, ...]
    """Each image's class, as a place in `classes`."""
    parts: tuple[str, ...] | None
    """Each image's part, one of PARTS; None where the source has no parts."""
    classes: tuple[str, ...]
    bad: tuple[BadFile, ...] = ()
    """Files that were found but cannot be images of this listing."""
    groups: tuple[str, ...] | None = None
    """Which images belong together, such as those of one patient: each image's group; None where the source has none.
    """
    unread: tuple[str, ...] = ()
    """The columns of a table that are not read."""

    @property
    def folder(self) -> Path:
        return self.source if self.source.is_dir() else self.source.parent

    @property
    def is_archive(self) -> bool:
        """Whether the images are the rows of an .npz file."""
        return self.source.suffix.lower() == ".npz" and not self.source.is_dir()

    def __len__(self) -> int:
        return len(self.names)

    def shown(self, image: int) -> str:
        """The image's name as a person should read it: cats/1.png, or images.npz[3]."""
        name = self.names[image]
        return printable(f"{self.source.name}{name}" if self.is_archive else name)

    def select(self, images: Sequence[int]) -> "Listing":
        """These images alone, in this order."""
        return replace(
            self,
            names=tuple(self.names[image] for image in images),
            labels=tuple(self.labels[image] for image in images),
            parts=None if self.parts is None else tuple(self.parts[image] for image in images),
            groups=None if self.groups is None else tuple(self.groups[image] for image in images),
        )


def is_hidden(name: str) -> bool:
    """Whether a file or folder of this name is the system's own: it is no picture that somebody has put there."""
    return name.startswith(".") or name.lower() in _OF_A_SYSTEM


def printable(name: str) -> str:
    """The name without what a terminal or a file in UTF-8 cannot take, such as bytes that are no text."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in name)


def picture_name(listing: Listing, image: int) -> str:
    """What a picture is called wherever it lies: its class, and its name without the ending. Rows have no name."""
    name = os.path.splitext(os.path.basename(listing.names[image]))[0]
    return "" if listing.is_archive else f"{listing.classes[listing.labels[image]]}/{name}"


def check_classes(listing: Listing) -> None:
    """Raise unless there are two classes, each with an image to train on, and no part has another class."""
    source = listing.source
    if len(listing.classes) < 2:
        if not listing.classes and source.is_dir():
            raise no_class_folders(source, ("cat", "dog"))
        found = f"one class, {listing.classes[0]!r}" if listing.classes else "no classes"
        below = [sorted(names) for names in folders_in_classes(listing).values() if len(names) > 1]
        deeper = ""
        if below:  # then there is one class
            inner, are_parts = source / listing.classes[0], set(below[0]) <= set(PARTS)
            classes = f" (if {some(below[0])} are the classes, name {inner})"
            deeper = f"; name {inner}, which has the parts {some(below[0])}" if are_parts else classes
        raise InputError(f"{source} has {found}; there must be two or more, each with images of its own{deeper}")
    labels = set(listing.labels)
    if listing.parts is not None:
        labels = {label for label, part in zip(listing.labels, listing.parts, strict=True) if part == "train"}
        for image, (label, part) in enumerate(zip(listing.labels, listing.parts, strict=True)):
            if label not in labels:
                raise InputError(
                    f"the class {listing.classes[label]!r} has images in {part} and none in train, such as "
                    f"{listing.shown(image)} of {source}; put some of its images into train, or leave the class out"
                )
    for label, name in enumerate(listing.classes):
        if label not in labels:
            where = " to train on" if listing.parts is not None else ""
            raise InputError(f"the class {name!r} of {source} has no images{where}; give it some, or leave it out")


def check_groups(listing: Listing) -> None:
    """Raise if a group has images in two parts: a network is not tested on patients that it was trained on."""
    if listing.groups is None or listing.parts is None:
        return
    first: dict[str, int] = {}
    for image, (group, part) in enumerate(zip(listing.groups, listing.parts, strict=True)):
        before = first.setdefault(group, image)
        if listing.parts[before] != part:
            raise InputError(
                f"the group {printable(group)!r} of {listing.source} has images in two parts: "
                f"{listing.shown(before)} in {listing.parts[before]} and {listing.shown(image)} in {part}; put all "
                "images of a group into one part"
            )


def folders_in_classes(listing: Listing) -> dict[str, set[str]]:
    """The names of the folders in each class folder that holds nothing else. Parts say where the classes are."""
    if listing.parts is not None or not listing.source.is_dir():
        return {}
    found: dict[str, set[str]] = {name: set() for name in listing.classes}
    for name in listing.names:
        label, first, *deeper = name.split("/")
        if deeper and label in found:
            found[label].add(printable(first))
        else:
            found.pop(label, None)
    return found


def notes_on_depth(listing: Listing) -> list[str]:
    """Where all class folders hold folders of the same names, those may be the classes."""
    found = folders_in_classes(listing)
    if not found or len(found) < len(listing.classes):
        return []
    shared = sorted(set.intersection(*found.values()))
    if len(shared) < 2:
        return []
    return [
        f"each of the classes {some([printable(name) for name in listing.classes])} has the folders {some(shared)}: if "
        "these are the classes, move the pictures of each into one folder"
    ]


def notes_on_groups(listing: Listing) -> Iterator[str]:
    """What a person should know of images that belong together: what was done, or how to say that they do."""
    if listing.groups is not None:
        count = len(set(listing.groups))
        yield (
            f"{len(listing):,} images in {count:,} groups: the images of a group are in one part, and intervals and "
            "thresholds count them as one draw"
        )
    elif listing.unread and listing.parts is None:
        several = len(listing.unread) > 1
        found, which = ("columns", "are not read; if one of them") if several else ("column", "is not read; if it")
        yield (
            f"the {found} {some(listing.unread)} {which} says which images are of the same patient, object or video, "
            "call it group, and these stay in one part"
        )


def no_class_folders(source: Path, classes: Sequence[str]) -> InputError:
    """The error for a folder whose pictures, if there are some, lie in no class folder."""
    such_as = " and ".join(str(source / name) for name in classes[:2])
    return InputError(
        f"{source} has no class folders; put the pictures of each class into a folder of their own, such as {such_as}"
    )


def refuse_bad(source: Path, bad: Sequence[BadFile], remedy: str) -> InputError:
    """The error for files that give no images. It ends with what to do."""
    listed = "".join(f"\n  {printable(name)}: {reason}" for name, reason in bad[:SHOWN])
    more = f"\n  … and {len(bad) - SHOWN:,} more" if len(bad) > SHOWN else ""
    files = "1 file" if len(bad) == 1 else f"{len(bad):,} files"
    return InputError(f"{files} of {source} cannot be used:{listed}{more}\n{remedy}")
