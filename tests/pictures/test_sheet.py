from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterpoint.errors import InputError
from counterpoint.pictures.sheet import draw_sheet


def test_pictures_stand_in_their_places(tmp_path: Path) -> None:
    red, green = np.zeros((32, 32, 3), np.uint8), np.zeros((16, 32, 3), np.uint8)
    red[..., 0], green[..., 1] = 200, 200
    grey = np.full((200, 100, 1), 90, np.uint8)
    path = tmp_path / "new" / "sheet.png"
    draw_sheet([("one", [red, green]), ("more", []), ("two", [grey])], ["a", "b"], path)
    sheet = np.asarray(Image.open(path))
    left = sheet.shape[1] - 20 - 2 * 100 + 4
    first, second = 48, 48 + 100 + 56
    assert (sheet[first : first + 96, left : left + 96] == [200, 0, 0]).all()
    beside = sheet[first : first + 96, left + 100 : left + 196]
    assert (beside[24:72] == [0, 200, 0]).all(), "a wide picture is centred"
    assert (beside[:24] == 255).all()
    tall = sheet[second : second + 96, left : left + 96]
    assert (tall[:, 24:72] == 90).all(), "a large picture is shrunk"
    assert (sheet[:, :left] < 255).any(), "rows have labels"


@pytest.mark.parametrize("name", ["sheet.txt", "sheet", ".", "sheet.png.gif"])
def test_a_name_that_is_not_a_pictures_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"a picture cannot be written as '{name}'; .* ends in .png or .jpg"):
        draw_sheet([], [], Path(name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "first_bytes"), [("sheet.PNG", b"\x89PNG"), ("sheet.jpg", b"\xff\xd8\xff")])
def test_the_name_decides_the_format(tmp_path: Path, name: str, first_bytes: bytes) -> None:
    draw_sheet([], [], tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(first_bytes)
