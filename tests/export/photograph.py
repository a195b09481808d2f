"""A picture file that tells apart all ways to make a square of it."""

from pathlib import Path

from PIL import Image

from tests.small import noise

_ORIENTATION, _ON_ITS_SIDE = 0x112, 6


def write_photograph(path: Path, channels: int) -> None:
    """Neither square nor of the run's size, an odd number of pixels too long, and lying on its side."""
    exif = Image.Exif()
    exif[_ORIENTATION] = _ON_ITS_SIDE
    pixels_HWC = noise(1, 32, channels)[0].permute(1, 2, 0).numpy()
    picture = Image.fromarray(pixels_HWC.squeeze()).resize((53, 48), Image.Resampling.BILINEAR)
    picture.save(path, exif=exif)
