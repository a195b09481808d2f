"""Images with the same content: in two parts they are an error, and within a part they stay together."""

from collections.abc import Sequence

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
