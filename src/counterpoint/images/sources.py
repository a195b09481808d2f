"""From a user's path to the list of the images that it stands for."""

from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.images.archives import list_archive
from counterpoint.images.folders import list_folder
from counterpoint.images.listing import Listing, check_classes
from counterpoint.images.tables import list_table

_FILES = {".csv": list_table, ".npz": list_archive}


def list_images(source: Path) -> Listing:
    """The images of a folder, a .csv or an .npz file. No image is opened yet.

    A folder has train/, perhaps val/ and test/, each with a folder per class; or a folder per class and no parts.
    """
    if source.is_dir():
        listing = list_folder(source)
    elif source.suffix.lower() in _FILES and source.is_file():
        listing = _FILES[source.suffix.lower()](source)
    else:
        found = "is no folder, .csv or .npz file" if source.exists() else "does not exist"
        raise InputError(
            f"{source} {found}; name a folder with one folder of images per class (or with those in train, val and "
            "test), a .csv file with the columns path and label, or an .npz file with the arrays images and labels"
        )
    check_classes(listing)
    return listing
