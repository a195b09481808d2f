"""Images with the same content: in two parts they are an error, and within a part they stay together, with a note."""

from collections.abc import Iterator, Sequence

from counterpoint.errors import InputError
from counterpoint.images.listing import Listing


def first_alike(hashes: Sequence[str]) -> tuple[int, ...]:
    """For each image the number of the first one with the same content: its own number, if no earlier image has that
    content.
    """
    first: dict[str, int] = {}
    return tuple(first.setdefault(digest, image) for image, digest in enumerate(hashes))


def check_duplicates(listing: Listing, hashes: Sequence[str]) -> None:
    """Raise if two parts hold the same image: an image that the network was trained on cannot test it."""
    if listing.parts is None:
        return
    alike = first_alike(hashes)
    pairs = [(first, image) for image, first in enumerate(alike) if listing.parts[first] != listing.parts[image]]
    if pairs:
        one, other = pairs[0]
        more = f" ({len(pairs):,} such pairs in all)" if len(pairs) > 1 else ""
        raise InputError(
            f"{listing.shown(one)} in {listing.parts[one]} and {listing.shown(other)} in {listing.parts[other]} of "
            f"{listing.source} are the same image{more}; remove it from one of the parts"
        )


def notes_on_copies(listing: Listing, hashes: Sequence[str]) -> Iterator[str]:
    """What a person should know of images with the same content: how many there are, and if their labels differ."""
    alike = first_alike(hashes)
    pairs = [(first, image) for image, first in enumerate(alike) if first != image]
    if pairs:
        copies = (
            "1 image is a copy of another one (" if len(pairs) == 1 else f"{len(pairs):,} images are copies (such as "
        )
        yield f"{copies}{_both(listing, pairs[0])}); figures and intervals count each copy as an image of its own"
    contradictory = [(one, other) for one, other in pairs if listing.labels[one] != listing.labels[other]]
    if contradictory:
        several = f" ({len(contradictory):,} such pairs in all)" if len(contradictory) > 1 else ""
        both = _both(listing, contradictory[0])
        yield f"the same image has two labels: {both}{several}; at least one of them is wrong"


def _both(listing: Listing, pair: tuple[int, int]) -> str:
    return f"{listing.shown(pair[0])} and {listing.shown(pair[1])}"
