import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from counterpoint.corrupt import FrostDir, corrupt, find_frost, frost_source
from counterpoint.corrupt.constants import read_table
from counterpoint.corrupt.frost import frost_pictures
from counterpoint.corrupt.pixels import Floats, Images, Scale
from counterpoint.errors import InputError

NAMES = ("frost1.png", "frost2.png", "frost3.png", "frost4.jpg", "frost5.jpg")


def pictures_for(frost_dir: FrostDir | None, height: int, width: int) -> tuple[Floats | Images, ...]:
    """For images of this size, under CIFAR-C's constants."""
    return frost_pictures(frost_dir, Scale(height, width, 32), read_table("cifar-c"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five flat pictures of 200 × 300 pixels, their grey levels 40, 80, … 200."""
    path = tmp_path / "frost"
    path.mkdir()
    for level, name in enumerate(NAMES, start=1):
        Image.new("RGB", (300, 200), (40 * level,) * 3).save(path / name)
    return path


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No photographs but those a test puts somewhere."""
    monkeypatch.setenv("COUNTERPOINT_DATA", str(tmp_path / "empty"))
    monkeypatch.setattr(sys, "path", [p for p in sys.path if not Path(p, "imagecorruptions").exists()])


def test_without_photographs_the_texture_is_used() -> None:
    assert frost_source() == "texture"
    pictures = pictures_for(None, 32, 32)
    assert len(pictures) == len(NAMES)
    assert all(picture.min() >= 0 and picture.max() <= 1 for picture in pictures)
    mean = np.mean([picture.mean(axis=(0, 1)) for picture in pictures], axis=0)
    assert mean == pytest.approx([0.572, 0.655, 0.702], abs=0.02)  # the photographs' mean colour


def test_photographs_are_found_in_the_data_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder.parent))
    assert frost_source() == "photographs"


def test_photographs_are_found_in_an_installed_wheel_that_is_not_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = folder.parent / "imagecorruptions"
    shutil.copytree(folder, package / "frost")
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(folder.parent))
    assert frost_source() == "photographs"


def test_all_five_named_photographs_are_used_evenly(folder: Path) -> None:
    assert frost_source(folder) == "photographs"
    black = np.zeros((1000, 32, 32, 1), np.uint8)
    levels = np.round(corrupt(black, "frost", 3, frost_dir=folder)[:, 0, 0, 0] / 0.4 / 40)
    assert np.bincount(levels.astype(int), minlength=6)[1:] == pytest.approx(200, rel=0.25)


def test_no_data_folder_but_the_given_one_is_looked_into(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder.parent))
    assert find_frost(folder.parent) == folder
    assert find_frost(folder.parent / "other") == "texture"
    assert frost_source("texture") == "texture"
    grey = np.full((3, 32, 32, 3), 100, np.uint8)
    texture, photographs = corrupt(grey, "frost", 3, frost_dir="texture"), corrupt(grey, "frost", 3)
    assert not np.array_equal(texture, photographs)
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder.parent / "other"))
    assert np.array_equal(texture, corrupt(grey, "frost", 3))


def test_an_incomplete_folder_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "frost4.jpg").unlink()
    with pytest.raises(InputError, match=r"frost does not hold the photographs frost1\.png"):
        frost_source(folder)
    monkeypatch.setenv("COUNTERPOINT_DATA", str(folder.parent))
    with pytest.raises(InputError, match=r"frost5\.jpg; add them, or remove the folder"):
        frost_source()


def test_photographs_are_scaled_by_a_fifth_without_antialiasing(photographs: Path) -> None:
    with Image.open(photographs / "frost5.jpg") as image:
        full = np.asarray(image.convert("RGB")) / 255
    assert np.allclose(pictures_for(photographs, 32, 32)[4], full[2::5, 2::5], atol=1e-9)


@pytest.mark.parametrize(("height", "width"), [(64, 64), (8, 8), (32, 400), (300, 20)])
def test_every_picture_is_larger_than_the_images(height: int, width: int, folder: Path) -> None:
    for picture in pictures_for(folder, height, width):
        assert picture.shape[0] > height
        assert picture.shape[1] > width


def test_photographs_for_photographs_are_not_scaled(photographs: Path) -> None:
    with Image.open(photographs / "frost5.jpg") as image:
        full = np.asarray(image.convert("RGB"))
    table = read_table("imagenet-c")
    assert np.array_equal(frost_pictures(photographs, Scale(224, 224, 224), table)[4], full)
    assert frost_pictures(photographs, Scale(112, 112, 224), table)[4].shape == (248, 330, 3)


def test_photographs_too_small_for_photographs_are_refused(folder: Path) -> None:
    images = np.zeros((1, 224, 224, 3), np.uint8)
    message = r"photograph has 200×300 pixels, .* too small for images of 224×224 when scaled by 1; use larger"
    with pytest.raises(InputError, match=message):
        corrupt(images, "frost", 1, frost_dir=folder)
    assert corrupt(images[:, :, :64], "frost", 1, frost_dir=folder).max() > 0  # CIFAR-C's constants: enlarged
    assert corrupt(np.zeros((1, 70, 300, 1), np.uint8), "frost", 1, frost_dir="texture").max() > 0


def test_photographs_are_enlarged_for_tall_images(folder: Path) -> None:
    for name in NAMES:
        Image.new("RGB", (300, 230), (100,) * 3).save(folder / name)
    tall = np.zeros((1, 300, 100, 3), np.uint8)
    assert set(np.unique(corrupt(tall, "frost", 1, frost_dir=folder)[0])) <= {39, 40, 41}
