"""A user's own images. Needs no torch: processes that decode start fast."""

from counterpoint.images.decode import MOST_PIXELS, Decoding, decode
from counterpoint.images.listing import PARTS, BadFile, Listing
from counterpoint.images.sources import list_images

__all__ = ["MOST_PIXELS", "PARTS", "BadFile", "Decoding", "Listing", "decode", "list_images"]
