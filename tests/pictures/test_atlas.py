from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, Constants, corrupt
from counterpoint.errors import InputError
from counterpoint.pictures.atlas import draw_atlas, draw_image_atlas
from tests.heard import Heard

Images = NDArray[np.uint8]


def test_every_cell_is_where_it_belongs(tmp_path: Path, made_up: Images) -> None:
    draw_atlas(made_up[0], tmp_path / "atlas.png", seed=2)
    sheet = np.asarray(Image.open(tmp_path / "atlas.png"))
    left_edge = sheet.shape[1] - 20 - 6 * 100 + 4
    for row, name in enumerate(CORRUPTIONS + EXTRA_CORRUPTIONS):
        cells = [made_up[:1], *(corrupt(made_up[:1], name, severity, 2) for severity in SEVERITIES)]
        for column, cell in enumerate(cells):
            top, left = 48 + 100 * row + (56 if name in EXTRA_CORRUPTIONS else 0), left_edge + 100 * column
            assert np.array_equal(sheet[top : top + 96, left : left + 96], cell[0].repeat(3, axis=0).repeat(3, axis=1))
    assert np.all(sheet[:, -20:] == 255)
    assert np.any(sheet[:, :left_edge] < 255)


def test_the_cells_are_counted(tmp_path: Path, made_up: Images) -> None:
    heard = Heard()
    draw_atlas(made_up[0], tmp_path / "atlas.png", watcher=heard)
    assert heard.counts == [("corrupting the image", done, 95) for done in range(96)]


@pytest.mark.parametrize(
    ("shape", "tile", "row"), [((8, 8, 1), 96, 96), ((20, 40, 3), 96, 40), ((72, 110, 3), 160, 72)]
)
def test_any_size_fits(tmp_path: Path, shape: tuple[int, int, int], tile: int, row: int) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    draw_atlas(image, tmp_path / "atlas.png")
    with Image.open(tmp_path / "atlas.png") as sheet:
        assert sheet.height == 120 + 19 * (row + 4)
        assert 100 < sheet.width - 6 * (tile + 4) < 300


@pytest.mark.parametrize("channels", [1, 3])
def test_a_photograph_is_reduced_before_it_is_corrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, channels: int
) -> None:
    given: list[Images] = []

    def remember(images_NHWC: Images, *_: object, **__: object) -> Images:
        given.append(images_NHWC)
        return images_NHWC

    monkeypatch.setattr("counterpoint.pictures.atlas.corrupt", remember)
    photograph = np.random.default_rng(0).integers(0, 256, (672, 448, channels), dtype=np.uint8)
    draw_atlas(photograph, tmp_path / "atlas.png")
    reduced = Image.fromarray(photograph.squeeze()).resize((224, 336), Image.Resampling.BILINEAR)
    assert len(given) == 95
    for images_NHWC in given:
        assert np.array_equal(images_NHWC, np.asarray(reduced).reshape(1, 336, 224, channels))


def test_the_constants_can_be_chosen(tmp_path: Path, made_up: Images) -> None:
    chosen: dict[str, Constants | None] = {"small.png": None, "cifar.png": "cifar-c", "imagenet.png": "imagenet-c"}
    for name, constants in chosen.items():
        draw_atlas(made_up[0], tmp_path / name, constants=constants)
    drawn = {name: (tmp_path / name).read_bytes() for name in chosen}
    assert drawn["small.png"] == drawn["cifar.png"] != drawn["imagenet.png"]


def test_a_picture_is_drawn_upright(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Images] = []
    monkeypatch.setattr("counterpoint.pictures.atlas.draw_atlas", lambda image, *_, **__: given.append(image))
    lying = Image.fromarray(np.zeros((10, 20, 3), np.uint8))
    exif = lying.getexif()
    exif[0x0112] = 6
    lying.save(tmp_path / "lying.png", exif=exif)
    draw_image_atlas(str(tmp_path / "lying.png"), None, tmp_path / "atlas.png", seed=0, root=tmp_path)
    assert given[0].shape == (20, 10, 3)


def test_a_picture_is_read_as_everywhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """16 bits become 8 by their full range, and what is transparent lies on white."""
    given: list[Images] = []
    monkeypatch.setattr("counterpoint.pictures.atlas.draw_atlas", lambda image, *_, **__: given.append(image))
    Image.fromarray(np.full((8, 8), 100 * 257, np.uint16)).save(tmp_path / "deep.png")
    Image.new("RGBA", (8, 8), (0, 0, 0, 0)).save(tmp_path / "clear.png")
    for name in ("deep.png", "clear.png"):
        draw_image_atlas(str(tmp_path / name), None, tmp_path / "atlas.png", seed=0, root=tmp_path)
    assert [(image.shape, image.min(), image.max()) for image in given] == [
        ((8, 8, 3), 100, 100),
        ((8, 8, 3), 255, 255),
    ]
    (tmp_path / "notes.png").write_bytes(b"buy milk")
    with pytest.raises(InputError, match=r"notes.png is no picture of a known format"):
        draw_image_atlas(str(tmp_path / "notes.png"), None, tmp_path / "atlas.png", seed=0, root=tmp_path)


def test_an_image_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="uint8"):
        draw_atlas(np.zeros((32, 32, 3)), tmp_path / "atlas.png")  # type: ignore[arg-type]
    assert not (tmp_path / "atlas.png").exists()
