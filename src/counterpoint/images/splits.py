"""Which images a run trains on and which were split off them: kept by content, so that the collection may grow."""

from collections import defaultdict
from dataclasses import dataclass, replace

from counterpoint.errors import InputError
from counterpoint.images.cache import DecodedImages


@dataclass(frozen=True)
class Split:
    """The images to train on and those that were split off them, in their order. Parts that a source gives are not
    among them.

    >>> from counterpoint.images.splits import Split
    >>> Split(contents=("5f", "a0", "77"), parts=("train", "test", "train"), classes=("cat", "dog")).of("train")
    ('5f', '77')
    """

    contents: tuple[str, ...]
    """The hash of each image."""
    parts: tuple[str, ...]
    """Each image's part, one of PARTS."""
    classes: tuple[str, ...]

    def of(self, wanted: str) -> tuple[str, ...]:
        """The contents of a part."""
        return tuple(content for content, part in zip(self.contents, self.parts, strict=True) if part == wanted)


def narrow(images: DecodedImages, split: Split) -> tuple[DecodedImages, int]:
    """The images as they were when the split was made, and how many were added since.

    Only images to train on, or to split off, are left out. A part that the source gives is taken as it is now.
    """
    listing, number = images.listing, {name: k for k, name in enumerate(split.classes)}
    known = [place for place, label in enumerate(listing.labels) if listing.classes[label] in number]
    given = [place for place in known if listing.parts is not None and listing.parts[place] != "train"]
    places: defaultdict[str, list[int]] = defaultdict(list)
    for place in sorted(set(known) - set(given), reverse=True):
        places[images.hashes[place]].append(place)
    # The first of several copies comes first.
    found = [places[content].pop() for content in split.contents if places.get(content)]
    if missing := len(split.contents) - len(found):
        raise InputError(
            f"{missing:,} of the images that the run was begun with are gone from {listing.source}, or have changed; "
            "put them back, or train a new run in another folder (--out)"
        )
    kept = [*found, *given]
    labels = tuple(number[listing.classes[listing.labels[place]]] for place in kept)
    narrowed = replace(listing.select(kept), labels=labels, classes=split.classes)
    hashes = tuple(images.hashes[place] for place in kept)
    return replace(images, listing=narrowed, hashes=hashes, rows_N=images.rows_N[kept]), len(listing) - len(kept)
