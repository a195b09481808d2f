"""A user's own images, from a path to decoded pixels on disk. Needs no torch: processes that decode start fast."""

from counterpoint.images.cache import DecodedImages, open_images
from counterpoint.images.decode import MOST_PIXELS, Decoding, decode
from counterpoint.images.listing import PARTS, BadFile, Listing
from counterpoint.images.sources import list_images

__all__ = [
    "MOST_PIXELS",
    "PARTS",
    "BadFile",
    "DecodedImages",
    "Decoding",
    "Listing",
    "decode",
    "list_images",
    "open_images",
]
