"""Every mode and format against what its pixels are known to be."""

import warnings

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, features

from counterpoint.errors import InputError
from counterpoint.images import MOST_PIXELS, Decoding, decode
from counterpoint.images.decode import to_pixels
from tests.images.pictures import bomb, colours, saved, tiled, turned

SQUARE = colours(8, 8)
AS_IS = Decoding(8)
GREY_RAMP = np.arange(64, dtype=np.uint8).reshape(8, 8) * 4


NEEDS_WEBP = pytest.mark.skipif(not features.check("webp"), reason="Pillow has no WebP")


def chw(pixels_HWC: np.ndarray) -> np.ndarray:
    return pixels_HWC.transpose(2, 0, 1)


def as_colour(grey_HW: np.ndarray) -> np.ndarray:
    return np.repeat(grey_HW[None], 3, axis=0)


@pytest.mark.parametrize(
    ("file_format", "options"),
    [
        ("PNG", {}),
        ("BMP", {}),
        ("PPM", {}),
        ("TIFF", {}),
        ("TIFF", {"compression": "tiff_lzw"}),
        pytest.param("WEBP", {"lossless": True}, marks=NEEDS_WEBP),
    ],
)
def test_a_picture_of_the_right_size_passes_bit_for_bit(file_format: str, options: dict[str, object]) -> None:
    assert np.array_equal(decode(saved(SQUARE, file_format, **options), AS_IS), chw(SQUARE))


@pytest.mark.parametrize("file_format", ["JPEG", "GIF", "JPEG2000", "AVIF"])
def test_lossy_formats_give_what_pillow_shows(file_format: str) -> None:
    if file_format == "AVIF" and not features.check("avif"):
        pytest.skip("no AVIF")
    smooth = np.asarray(Image.fromarray(colours(2, 2)).resize((8, 8)))
    decoded = decode(saved(smooth, file_format), AS_IS)
    assert decoded.shape == (3, 8, 8)
    assert np.abs(decoded.astype(int) - chw(smooth)).mean() < 24


def test_grey_stays_grey_in_colour_and_is_kept_where_grey_is_asked_for() -> None:
    content = saved(GREY_RAMP)
    assert np.array_equal(decode(content, AS_IS), as_colour(GREY_RAMP))
    assert np.array_equal(decode(content, Decoding(8, grey=True)), GREY_RAMP[None])


def test_colour_in_grey_is_its_luma() -> None:
    red, green, blue = SQUARE.astype(int).transpose(2, 0, 1)
    luma = (red * 299 + green * 587 + blue * 114) / 1000
    assert np.abs(decode(saved(SQUARE), Decoding(8, grey=True))[0] - luma).max() <= 1


def test_one_bit_is_black_and_white() -> None:
    bits = GREY_RAMP > 100
    for file_format in ("PNG", "TIFF"):
        assert np.array_equal(decode(saved(Image.fromarray(bits), file_format), AS_IS), as_colour(bits * np.uint8(255)))


@pytest.mark.parametrize("file_format", ["PNG", "TIFF", "PPM"])
def test_sixteen_bits_are_scaled_by_their_full_range(file_format: str) -> None:
    values = np.linspace(0, 65_535, 64).astype(np.uint16).reshape(8, 8)
    expected = np.rint(values / 65_535 * 255).astype(np.uint8)
    assert (expected.min(), expected.max()) == (0, 255)
    assert np.array_equal(decode(saved(values, file_format), AS_IS), as_colour(expected))


@pytest.mark.parametrize("mode", ["I;16", "I;16L", "I;16B", "I"])
def test_every_mode_of_whole_numbers_is_read(mode: str) -> None:
    dtype = {"I;16B": ">u2", "I": "<i4"}.get(mode, "<u2")
    values = np.array([[0, 128, 129], [257, 30_000, 65_535]])
    image = Image.frombytes(mode, (3, 2), values.astype(dtype).tobytes())
    assert np.array_equal(to_pixels(image, Decoding(2, grey=True))[0], np.rint(values / 257)[:, :2])


def test_whole_numbers_beyond_sixteen_bits_are_refused() -> None:
    for values in (np.full((8, 8), 65_536, np.int32), np.full((8, 8), -1, np.int32)):
        with pytest.raises(InputError, match=r"has whole numbers from .* must lie between 0 and 65,535"):
            decode(saved(values, "TIFF"), AS_IS)


def test_floats_lie_between_nought_and_one() -> None:
    values = np.linspace(0, 1, 64, dtype=np.float32).reshape(8, 8)
    expected = np.rint(values.astype(float) * 255).astype(np.uint8)
    assert np.array_equal(decode(saved(values, "TIFF"), AS_IS), as_colour(expected))
    for wrong in (values * 2, values - 0.5, np.full((8, 8), np.nan, np.float32)):
        with pytest.raises(InputError, match=r"has floats from .* must lie between 0 and 1"):
            decode(saved(wrong.astype(np.float32), "TIFF"), AS_IS)


def over_white(pixels_HWC: NDArray[np.uint8], alpha_HW: NDArray[np.uint8]) -> np.ndarray:
    share = alpha_HW[..., None] / 255
    return chw(pixels_HWC * share + 255 * (1 - share))


@pytest.mark.parametrize("file_format", ["PNG", "TIFF"])
def test_transparency_is_laid_over_white(file_format: str) -> None:
    content = saved(np.concatenate([SQUARE, GREY_RAMP[..., None]], axis=2), file_format)
    assert np.abs(decode(content, AS_IS) - over_white(SQUARE, GREY_RAMP)).max() <= 1
    grey = saved(Image.fromarray(np.stack([SQUARE[..., 0], GREY_RAMP], axis=2)), file_format)
    expected = over_white(np.repeat(SQUARE[..., :1], 3, axis=2), GREY_RAMP)
    assert np.abs(decode(grey, AS_IS) - expected).max() <= 1


def test_what_is_opaque_or_hidden_is_exact() -> None:
    for alpha, expected in ((255, chw(SQUARE)), (0, np.full((3, 8, 8), 255))):
        with_alpha = np.concatenate([SQUARE, np.full((8, 8, 1), alpha, np.uint8)], axis=2)
        assert np.array_equal(decode(saved(with_alpha), AS_IS), expected)


def palette_picture() -> Image.Image:
    image = Image.frombytes("P", (8, 8), bytes(index % 4 for index in range(64)))
    image.putpalette([10, 20, 30, 200, 0, 0, 0, 200, 0, 0, 0, 200])
    return image


@pytest.mark.parametrize("file_format", ["PNG", "GIF"])
def test_a_palette_gives_its_colours_and_a_transparent_one_is_white(file_format: str) -> None:
    colours_43 = np.array([[10, 20, 30], [200, 0, 0], [0, 200, 0], [0, 0, 200]], np.uint8)
    index_HW = np.arange(64).reshape(8, 8) % 4
    assert np.array_equal(decode(saved(palette_picture(), file_format), AS_IS), chw(colours_43[index_HW]))
    colours_43[1] = 255
    content = saved(palette_picture(), file_format, transparency=1)
    assert np.array_equal(decode(content, AS_IS), chw(colours_43[index_HW]))


def test_a_colour_that_stands_for_transparency_is_white() -> None:
    expected = SQUARE.copy()
    expected[0, 0] = 255
    content = saved(SQUARE, transparency=tuple(SQUARE[0, 0].tolist()))
    assert np.array_equal(decode(content, AS_IS), chw(expected))


@pytest.mark.parametrize("file_format", ["TIFF", "JPEG"])
def test_cmyk_gives_the_colours_of_its_inks(file_format: str) -> None:
    inks = np.zeros((8, 8, 4), np.uint8)
    inks[:, :4, 0], inks[:, 4:, 3] = 255, 255  # cyan, and black
    decoded = decode(saved(Image.fromarray(inks, "CMYK"), file_format, quality=95), AS_IS).astype(int)
    expected = np.zeros((3, 8, 8), int)
    expected[1:, :, :4] = 255
    assert np.abs(decoded - expected).max() < 16


UPRIGHT = Image.fromarray(colours(8, 8, seed=3))
STORED = {  # how a camera stores an upright picture, for each orientation of the EXIF standard
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: np.rot90(pixels, 1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: lambda pixels: np.rot90(pixels, -1),
}


@pytest.mark.parametrize("orientation", STORED)
@pytest.mark.parametrize("file_format", ["PNG", "TIFF", pytest.param("WEBP", marks=NEEDS_WEBP)])
def test_the_exif_orientation_is_followed_once(file_format: str, orientation: int) -> None:
    stored = Image.fromarray(np.ascontiguousarray(STORED[orientation](np.asarray(UPRIGHT))))
    content = turned(stored, file_format, orientation)
    assert np.array_equal(decode(content, AS_IS), chw(np.asarray(UPRIGHT)))


def test_a_turned_photograph_is_cropped_as_it_is_seen() -> None:
    wide = np.zeros((8, 24, 3), np.uint8)
    wide[:, :8] = 255  # stored on its side: white is at the top when it is upright
    upright = decode(turned(Image.fromarray(wide), "JPEG", 6), AS_IS)
    assert upright.max() < 32, "the middle is black"
    tall = decode(turned(Image.fromarray(wide[:, :16]), "JPEG", 6), Decoding(8))
    assert tall[:, :2].min() > 220
    assert tall[:, -2:].max() < 32


def test_damaged_metadata_do_not_spoil_a_picture() -> None:
    content = saved(SQUARE, "PNG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff broken")
    assert np.array_equal(decode(content, AS_IS), chw(SQUARE))


def slowly(pixels_HWC: np.ndarray, size: int) -> np.ndarray:
    """The rule in words: the shorter side becomes `size`, then the middle square."""
    height, width, _ = pixels_HWC.shape
    new = (int(size * width / height), size) if height < width else (size, int(size * height / width))
    image = Image.fromarray(pixels_HWC).resize(new, Image.Resampling.BICUBIC)
    left, top = (round((side - size) / 2) for side in new)
    return chw(np.asarray(image)[top : top + size, left : left + size])


@pytest.mark.parametrize("shape", [(20, 31), (31, 20), (5, 9), (9, 5), (40, 8), (8, 40), (8, 9), (17, 17), (1, 30)])
def test_the_shorter_side_is_resized_and_the_middle_taken(shape: tuple[int, int]) -> None:
    pixels = colours(*shape)
    assert np.array_equal(decode(saved(pixels), AS_IS), slowly(pixels, 8))


def test_a_side_that_is_right_is_only_cropped() -> None:
    pixels = colours(8, 13)
    assert np.array_equal(decode(saved(pixels), AS_IS), chw(pixels[:, 2:10]))


def test_reducing_averages() -> None:
    board = np.indices((64, 64)).sum(axis=0)[..., None].repeat(3, axis=2) % 2 * np.uint8(255)
    assert np.abs(decode(saved(board.astype(np.uint8)), AS_IS).astype(int) - 127).max() <= 8


@pytest.mark.parametrize("file_format", ["PNG", "JPEG", "TIFF", "GIF", "BMP", pytest.param("WEBP", marks=NEEDS_WEBP)])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
def test_a_file_that_is_cut_short_is_refused(file_format: str, share: float) -> None:
    whole = saved(colours(60, 50), file_format)
    with pytest.raises(InputError, match=r"is damaged or cut short|is no picture|is empty"):
        decode(whole[: int(share * len(whole))], AS_IS)


def test_a_text_is_no_picture() -> None:
    with pytest.raises(InputError, match="is no picture of a known format"):
        decode(b"this is a text, whatever its file is called\n", AS_IS)


def test_an_empty_file_is_called_empty() -> None:
    with pytest.raises(InputError, match=r"^is empty$"):
        decode(b"", AS_IS)


@pytest.mark.parametrize("brand", [b"heic", b"mif1"])
def test_a_picture_of_a_telephone_is_told_by_its_name(brand: bytes) -> None:
    first_box = b"\x00\x00\x00\x18ftyp" + brand + b"\x00\x00\x00\x00" + b"mif1heic"
    with pytest.raises(InputError, match=r"is a HEIC picture, .*; save it as JPEG or PNG"):
        decode(first_box + bytes(200), AS_IS)


def test_a_format_that_runs_programs_is_no_picture() -> None:
    with pytest.raises(InputError, match="is no picture of a known format"):
        decode(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n", AS_IS)


@pytest.mark.parametrize(("width", "height"), [(100_000, 100_000), (13_400, 13_400)])
def test_a_bomb_is_refused_undecoded(width: int, height: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_: Image.Image) -> None:
        raise AssertionError("it was decoded")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    with pytest.raises(InputError, match=rf"claims .*{MOST_PIXELS:,}"):
        decode(bomb(width, height), AS_IS)


def test_our_own_limit_holds_where_pillows_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", None)
    with pytest.raises(InputError, match=rf"claims 100,000 × 100,000 pixels; at most {MOST_PIXELS:,} are decoded"):
        decode(bomb(), AS_IS)


def test_fewer_pixels_can_be_allowed() -> None:
    picture = saved(Image.new("RGB", (30, 20)))
    assert decode(picture, Decoding(8), most_pixels=600).shape == (3, 8, 8)
    with pytest.raises(InputError, match=r"claims 30 × 20 pixels; at most 599 are decoded"):
        decode(picture, Decoding(8), most_pixels=599)


def test_a_tile_may_be_larger_than_its_picture_but_not_than_the_limit() -> None:
    """All of it is decoded: one of 46,336 pixels a side takes 2 GB of memory, and 2 MB in the file."""
    assert decode(tiled(32), Decoding(16, grey=True), most_pixels=1024).shape == (1, 16, 16)
    with pytest.raises(InputError, match=r"has tiles that claim 48 × 48 pixels; at most 2,303 are decoded"):
        decode(tiled(48), Decoding(16, grey=True), most_pixels=2303)


def test_fewer_pixels_can_be_allowed_when_it_is_resized() -> None:
    strip = saved(Image.new("L", (300, 10)))
    assert decode(strip, Decoding(20), most_pixels=12_000).shape == (3, 20, 20)
    with pytest.raises(InputError, match=r"would be resized to 600 × 20 pixels; at most 11,999 are decoded"):
        decode(strip, Decoding(20), most_pixels=11_999)


def test_a_strip_that_would_grow_beyond_the_limit_is_refused() -> None:
    strip = Image.new("L", (100_000, 1))
    with pytest.raises(InputError, match=r"would be resized to 22,400,000 × 224 pixels; at most"):
        decode(saved(strip), Decoding(224))


def test_a_large_photograph_passes_without_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 80)
    content = saved(colours(10, 10))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert decode(content, Decoding(10)).shape == (3, 10, 10)


@pytest.mark.parametrize("size", [0, -1, 4097])
def test_an_impossible_size_is_refused(size: int) -> None:
    with pytest.raises(InputError, match=f"the size of the images is {size}; it must be from 1 to 4,096"):
        Decoding(size)
