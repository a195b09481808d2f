"""Images in folders: one folder per class, inside train/, val/ and test/ or without parts."""

import os
from pathlib import Path
from typing import NamedTuple

from counterpoint.errors import InputError
from counterpoint.images.fence import Fence
from counterpoint.images.listing import PARTS, BadFile, Listing, is_hidden, printable

_OTHER_SPELLINGS = ("training", "valid", "validation", "dev", "testing")


class Content(NamedTuple):
    """What lies in a folder, ordered by name. All names are relative to the source."""

    folders: list[str]
    files: list[str]
    bad: list[BadFile]


def list_folder(source: Path) -> Listing:
    """The images of the class folders, ordered by part, class and path.

    A class folder's own folders are read too. Hidden files and folders do not count.
    """
    top = look_into(source, "")
    places = _part_folders(source, top.folders) or {"": ""}
    bad = [*top.bad, *strays(top.files)]
    found: list[tuple[str, str, str]] = []
    for part, folder in places.items():
        content = look_into(source, folder) if part else Content(top.folders, [], [])
        bad += [*content.bad, *strays(content.files)]
        for class_folder in content.folders:
            label = class_name(source, class_folder)
            images = images_below(source, class_folder)
            bad += images.bad
            found += [(name, label, part) for name in images.files]
    classes = tuple(sorted({label for _, label, _ in found}))
    number = {label: k for k, label in enumerate(classes)}
    return Listing(
        source,
        names=tuple(name for name, _, _ in found),
        labels=tuple(number[label] for _, label, _ in found),
        parts=tuple(part for _, _, part in found) if "train" in places else None,
        classes=classes,
        bad=tuple(bad),
    )


def _part_folders(source: Path, folders: list[str]) -> dict[str, str]:
    """The folders train, val and test, as far as they are there. None of them means that the folders are classes."""
    doubtful = [name for name in folders if name not in PARTS and name.lower() in (*PARTS, *_OTHER_SPELLINGS)]
    parts = {part: part for part in PARTS if part in folders}
    unknown = [name for name in folders if name not in PARTS] if parts else doubtful
    if unknown:
        raise InputError(
            f"{source} has the folder {printable(unknown[0])!r}, and it is not clear whether that is a part or a "
            "class; name the parts train, val and test, with a folder for each class in them and no others beside them"
        )
    if parts and "train" not in parts:
        raise InputError(f"{source} has {' and '.join(parts)} and no train; put the images to train on into train")
    return parts


def class_name(source: Path, folder: str) -> str:
    """What a class folder is called, which must be text."""
    name = folder.rpartition("/")[2]
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InputError(
            f"the folder {printable(folder)!r} of {source} has a name that is no text; rename it"
        ) from None
    return name


def strays(files: list[str]) -> list[BadFile]:
    """Files that lie beside class folders."""
    return [BadFile(name, "lies in no class folder") for name in files]


def images_below(source: Path, folder: str) -> Content:
    """All files below a class folder, which must have some."""
    content = files_below(source, folder)
    if not content.files and not content.bad:
        raise InputError(f"the class folder {printable(folder)!r} of {source} has no images; add some, or remove it")
    return content


def files_below(source: Path, folder: str, trail: tuple[str, ...] = ()) -> Content:
    """All files below a folder; `trail` holds the folders above it, so that no link leads in circles."""
    real = os.path.realpath(source / folder)
    if real in trail:
        raise InputError(f"the link {printable(folder)} of {source} leads to a folder that it lies in; remove it")
    content = look_into(source, folder)
    for deeper in content.folders:
        below = files_below(source, deeper, (*trail, real))
        content.files.extend(below.files)
        content.bad.extend(below.bad)
    return content


def look_into(source: Path, folder: str) -> Content:
    """What lies in a folder of the source. A link that leads out of the source is refused."""
    content, fence = Content([], [], []), Fence(source)
    for entry in _scan(source / folder):
        name = f"{folder}/{entry.name}" if folder else entry.name
        if entry.is_symlink() and (target := fence.way_out(name)):
            raise fence.refuse(f"the link {printable(name)}", target)
        if entry.is_dir() if not entry.is_symlink() else os.path.isdir(entry):
            content.folders.append(name)
        elif entry.is_file() if not entry.is_symlink() else os.path.isfile(entry):
            content.files.append(name)
        else:
            reason = "is a link that leads nowhere" if entry.is_symlink() else "is no ordinary file"
            content.bad.append(BadFile(name, reason))
    return content


def _scan(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            return sorted((entry for entry in entries if not is_hidden(entry.name)), key=lambda entry: entry.name)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read ({error.strerror})") from None
