"""A user's own images. Needs no torch: processes that decode start fast."""

from counterpoint.images.listing import PARTS, BadFile, Listing
from counterpoint.images.sources import list_images

__all__ = ["PARTS", "BadFile", "Listing", "list_images"]
