"""From the bytes of a picture to its pixels: 8-bit RGB or grey, upright, cropped to a square.

1. Only common formats are read, and of an animation or a document the first frame. Colour profiles are not applied.
2. The EXIF orientation is followed.
3. Transparency is laid over white, the paper that drawings and cut-outs are made for. What lies below it was never
   meant to be seen.
4. 16-bit grey becomes 8-bit by its full range, 65,535 to 255; so do floats from 0 to 1. Nothing is guessed from the
   values: integers beyond 16 bits and other floats are refused.
5. The shorter side is resized to `size` by Pillow's bicubic filter, which averages as it reduces; the longer side keeps
   the proportion, rounded down. Of that the middle square is taken. A side that is right is not touched, so that a
   picture of the right size passes bit for bit. These are the sizes and the place that torchvision computes, so that
   pretrained networks see what they know.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from PIL.TiffImagePlugin import TiffImageFile

from counterpoint.errors import InputError

VERSION = 1
"""The version of the rules above. If it changes, all images are decoded again."""
MOST_PIXELS = 178_956_970
"""A picture that claims more pixels is not decoded. Pillow has the same limit."""

_FORMATS = ("PNG", "JPEG", "WEBP", "TIFF", "GIF", "BMP", "PPM", "AVIF", "JPEG2000")
_HEIC = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"mif1", b"msf1")
"""What the names of this format begin with, in a file's first box. Pillow cannot read it."""
_ORIENTATION_TAG = 0x0112
_TILE_SIDES = (322, 323)  # the tags of a TIFF's
_UPRIGHT = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


@dataclass(frozen=True)
class Decoding:
    """The form that every picture gets: `size` × `size` pixels, in colour or in grey.

    >>> from counterpoint.images import Decoding
    >>> Decoding(size=32, grey=True).size
    32
    """

    size: int
    grey: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.size <= 4096:
            raise InputError(f"the size of the images is {self.size}; it must be from 1 to 4,096 pixels")

    @property
    def shape(self) -> tuple[int, int, int]:
        return (1 if self.grey else 3, self.size, self.size)


def decode(content: bytes, decoding: Decoding, most_pixels: int = MOST_PIXELS) -> NDArray[np.uint8]:
    """Decode the bytes of a picture file into uint8 pixels (C, H, W). An error says what is wrong with the file.

    `most_pixels` limits the size of the picture. Lower it for pictures from strangers: decoding takes up to 20 bytes of
    memory per pixel.

    >>> import io
    >>> from PIL import Image
    >>> from counterpoint.images import Decoding, decode
    >>> file = io.BytesIO()
    >>> Image.new("RGB", (40, 30), "red").save(file, "PNG")
    >>> decode(file.getvalue(), Decoding(size=16)).shape
    (3, 16, 16)
    """
    with _reading():
        return to_pixels(_upright(_open(content, most_pixels)), decoding, most_pixels)


def decode_whole(content: bytes) -> NDArray[np.uint8]:
    """All of a picture in colour (H, W, 3), neither resized nor cropped. Otherwise the rules are the same."""
    with _reading():
        return np.array(_to_eight_bit(_upright(_open(content, MOST_PIXELS))).convert("RGB"))


@contextmanager
def _reading() -> Iterator[None]:
    """Inside, whatever a damaged file raises becomes an error that says so."""
    with warnings.catch_warnings():
        # Warnings about odd metadata do not matter, and a picture that is too large is refused.
        warnings.simplefilter("ignore")
        try:
            yield
        except InputError:
            raise
        except Exception as error:  # a damaged file can raise almost anything
            raise InputError(f"is damaged or cut short ({str(error) or type(error).__name__})") from None


def to_pixels(image: Image.Image, decoding: Decoding, most_pixels: int = MOST_PIXELS) -> NDArray[np.uint8]:
    """A loaded picture of any mode as (C, H, W). On the way it never gets more than `most_pixels`."""
    eight_bit = _to_eight_bit(image).convert("L" if decoding.grey else "RGB")
    pixels = np.asarray(_square(eight_bit, decoding.size, most_pixels))
    return np.ascontiguousarray(pixels[None] if decoding.grey else pixels.transpose(2, 0, 1))


def _open(content: bytes, most_pixels: int) -> Image.Image:
    Image.init()
    try:
        image = Image.open(io.BytesIO(content), formats=[name for name in _FORMATS if name in Image.OPEN])
    except UnidentifiedImageError:
        raise InputError(_why_unknown(content)) from None
    except Image.DecompressionBombError:
        raise InputError(f"claims more than {most_pixels:,} pixels, the most that are decoded") from None
    _check_pixels(image.width, image.height, "claims", most_pixels)
    if isinstance(image, TiffImageFile):
        # A tile may be larger than the picture, and is decoded whole.
        width, height = (image.tag_v2.get(side, 1) for side in _TILE_SIDES)
        _check_pixels(width, height, "has tiles that claim", most_pixels)
    return image


def _why_unknown(content: bytes) -> str:
    if not content:
        return "is empty"
    if content[4:8] == b"ftyp" and content[8:12] in _HEIC:
        return "is a HEIC picture, as telephones take them, which is not read; save it as JPEG or PNG"
    return f"is no picture of a known format ({', '.join(_FORMATS)})"


def _check_pixels(width: int, height: int, verb: str, most: int) -> None:
    if width * height > most:
        raise InputError(f"{verb} {width:,} × {height:,} pixels; at most {most:,} are decoded")


def _upright(image: Image.Image) -> Image.Image:
    image.load()  # first, since a TIFF is turned by Pillow as it is loaded
    try:
        orientation = image.getexif().get(_ORIENTATION_TAG)
    except Exception:  # EXIF data that cannot be read say nothing of the orientation
        return image
    return image.transpose(_UPRIGHT[orientation]) if orientation in _UPRIGHT else image


def _to_eight_bit(image: Image.Image) -> Image.Image:
    """The picture without transparency, with eight bits per channel."""
    if image.mode.startswith("I"):
        return _scaled(np.asarray(image), 65_535, "whole numbers")
    if image.mode == "F":
        return _scaled(np.asarray(image), 1, "floats")
    if image.has_transparency_data:
        coloured = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", image.size, "white"), coloured)
    return image


def _scaled(values_HW: np.ndarray, brightest: int, kind: str) -> Image.Image:
    lowest, highest = values_HW.min(), values_HW.max()
    if not (lowest >= 0 and highest <= brightest):
        raise InputError(f"has {kind} from {lowest:,} to {highest:,}; they must lie between 0 and {brightest:,}")
    return Image.fromarray(np.rint(values_HW * (255 / brightest)).astype(np.uint8))


def _square(image: Image.Image, size: int, most_pixels: int) -> Image.Image:
    width, height = image.size
    if min(width, height) != size:
        width, height = (size * side // min(image.size) for side in image.size)
        _check_pixels(width, height, "would be resized to", most_pixels)
        image = image.resize((width, height), Image.Resampling.BICUBIC)
    left, top = round((width - size) / 2), round((height - size) / 2)
    return image.crop((left, top, left + size, top + size))
