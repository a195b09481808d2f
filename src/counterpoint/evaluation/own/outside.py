"""A user's outside images, which are of none of the run's classes, decoded in the same way as the run's images."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch

from counterpoint.data.user_images import mapped_set
from counterpoint.errors import InputError
from counterpoint.evaluation.image_groups import OUTSIDE, ImageGroup
from counterpoint.evaluation.logits import outside_file
from counterpoint.evaluation.own.reading import Reader, check_names, refuse_known
from counterpoint.images import Listing
from counterpoint.images.sources import list_unlabelled
from counterpoint.records.codec import encode
from counterpoint.records.images import OutsideImages


def check_outside_names(names: Iterable[str], dataset: str) -> None:
    """Raise for a name that cannot be that of outside images. The other CIFAR is a set of its own, and has its name."""
    check_names("outside images", names, [OUTSIDE[dataset].name] if dataset in OUTSIDE else [])


def own_outside_groups(outside: Mapping[str, Path | str], reader: Reader) -> list[ImageGroup]:
    """The user's outside images, by name."""
    return [_group(name, Path(path), reader) for name, path in outside.items()]


def _group(name: str, source: Path, reader: Reader) -> ImageGroup:
    reason = "it belongs to a class of the run, and outside images belong to none"
    images = reader.open(name, list_unlabelled(source), _check_not_empty, reason)
    refuse_known(
        images, reader.test_images_among(images), "is a test image of the run", f"leave it out, since {reason}"
    )
    content = json.dumps([str(reader.decoding), images.hashes])
    about = OutsideImages(len(images.listing), hashlib.sha256(content.encode()).hexdigest()[:16])
    pixels = mapped_set(images, torch.arange(len(images.listing)))
    files = {outside_file(name): lambda: pixels}
    # In float16, rounding would let the members seem to differ a little more than on the clean images.
    return ImageGroup(name, encode(about), files, None, np.float32, about.images, listed_in="outside")


def _check_not_empty(listing: Listing) -> None:
    if not len(listing):
        raise InputError(f"{listing.source} has no pictures; name a folder that has some, at any depth")
