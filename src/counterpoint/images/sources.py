"""From a user's path to the list of the images that it stands for."""

from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.images.archives import list_archive, list_rows
from counterpoint.images.folders import files_below, list_folder
from counterpoint.images.listing import BadFile, Listing, check_classes, check_groups
from counterpoint.images.tables import list_table

_FILES = {".csv": list_table, ".npz": list_archive}


def list_images(source: Path | str) -> Listing:
    """The images of a folder, a .csv or an .npz file. No image is opened yet.

    A folder has train/, perhaps val/ and test/, each with a folder per class; or a folder per class and no parts.

    >>> from pathlib import Path
    >>> from counterpoint.images import list_images
    >>> for name in ("cat/1.png", "cat/2.png", "dog/3.png"):
    ...     path = Path("photos", name)
    ...     path.parent.mkdir(parents=True, exist_ok=True)
    ...     path.touch()
    >>> list_images(Path("photos")).names
    ('cat/1.png', 'cat/2.png', 'dog/3.png')
    """
    source = Path(source)
    listing = list_folder(source) if source.is_dir() else list_file(source, " (or with those in train, val and test)")
    check_classes(listing)
    check_groups(listing)
    return listing


def list_file(source: Path, also: str = "") -> Listing:
    """The images of a .csv or an .npz file. `also` is what a folder may contain, for the error message if the path is
    none of these.
    """
    if source.suffix.lower() in _FILES and source.is_file():
        return _FILES[source.suffix.lower()](source)
    found = "is no folder, .csv or .npz file" if source.exists() else "does not exist"
    raise InputError(
        f"{source} {found}; name a folder with one folder of images per class{also}, a .csv file with the columns path "
        "and label, or an .npz file with the arrays images and labels"
    )


def check_not_inside(path: Path, source: Path | str) -> None:
    """Raise if what is to be written at `path` would be read as a class or as a picture the next time."""
    if Path(source).is_dir() and path.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(
            f"{path} lies in {source}, where every folder and file is taken for a class or a picture; choose a folder "
            "outside of it (--out)"
        )


def list_unlabelled(source: Path) -> Listing:
    """All pictures of a folder, at any depth, or the rows of an .npz file. Folders and labels mean nothing here."""
    bad: tuple[BadFile, ...] = ()
    if source.is_dir():
        content = files_below(source, "")
        names, bad = tuple(sorted(content.files)), tuple(content.bad)
    elif source.suffix.lower() == ".npz" and source.is_file():
        names = list_rows(source)
    else:
        found = "is no folder or .npz file" if source.exists() else "does not exist"
        raise InputError(f"{source} {found}; name a folder of pictures, or an .npz file with the array images")
    return Listing(source, names, (0,) * len(names), None, ("",), bad)
