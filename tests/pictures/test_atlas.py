from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from counterpoint.corrupt import CORRUPTIONS, EXTRA_CORRUPTIONS, SEVERITIES, corrupt
from counterpoint.errors import InputError
from counterpoint.pictures.atlas import draw_atlas
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


@pytest.mark.parametrize("shape", [(8, 8, 1), (20, 40, 3), (200, 120, 3)])
def test_any_size_fits(tmp_path: Path, shape: tuple[int, int, int]) -> None:
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    draw_atlas(image, tmp_path / "atlas.png")
    with Image.open(tmp_path / "atlas.png") as sheet:
        assert sheet.height == 2020
        assert 700 < sheet.width < 900


def test_an_image_of_the_wrong_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="uint8"):
        draw_atlas(np.zeros((32, 32, 3)), tmp_path / "atlas.png")  # type: ignore[arg-type]
    assert not (tmp_path / "atlas.png").exists()
