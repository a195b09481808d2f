import json
from pathlib import Path

import numpy as np
import pytest

from counterpoint.corrupt import About, read_about, read_cell
from counterpoint.corrupt.cells import claim, finished_file, write_about
from counterpoint.errors import InputError

ABOUT = About(dataset="tiny", images_md5="0f", seed=3, version="1", frost="texture")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Fog of four 8×8 images; the value of a pixel is ten times its severity plus the image's index."""
    values = (10 * np.arange(1, 6)[:, None] + np.arange(4)).reshape(20, 1, 1, 1)
    np.save(tmp_path / "fog.npy", np.broadcast_to(values, (20, 8, 8, 3)).astype(np.uint8))
    return tmp_path


def test_a_cell_is_a_read_only_view_of_the_file(folder: Path) -> None:
    for severity in range(1, 6):
        cell = read_cell(folder, "fog", severity, 4)
        assert isinstance(cell, np.memmap)
        assert not cell.flags.writeable
        assert cell.shape == (4, 8, 8, 3)
        assert cell[:, 0, 0, 0].tolist() == [10 * severity + image for image in range(4)]


@pytest.mark.parametrize(("name", "severity"), [("fogg", 1), ("fog", 0), ("fog", 6)])
def test_a_cell_that_cannot_be(folder: Path, name: str, severity: int) -> None:
    with pytest.raises(InputError, match=r"did you mean 'fog'|severity is"):
        read_cell(folder, name, severity, 4)


def test_a_missing_file(folder: Path) -> None:
    with pytest.raises(InputError, match=r"snow\.npy is missing; make it with `counterpoint corrupt`"):
        read_cell(folder, "snow", 1, 4)


@pytest.mark.parametrize("length", [0, 5, 64, 1000])
def test_a_file_that_was_cut_short(folder: Path, length: int) -> None:
    path = folder / "fog.npy"
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(InputError, match=r"fog\.npy is damaged or cut short"):
        read_cell(folder, "fog", 1, 4)


@pytest.mark.parametrize(
    "array",
    [np.zeros((15, 8, 8, 3), np.uint8), np.zeros((20, 8, 8, 3), np.float32), np.zeros((20, 8, 8), np.uint8)],
)
def test_a_file_of_the_wrong_shape_or_type(folder: Path, array: np.ndarray) -> None:
    np.save(folder / "fog.npy", array)
    with pytest.raises(InputError, match=r"for 4 images it must hold uint8 \(20, rows, columns, channels\)"):
        read_cell(folder, "fog", 1, 4)


def test_about_goes_through_a_file(tmp_path: Path) -> None:
    assert read_about(tmp_path) is None
    about = About("tiny", "0f", 3, "1", "texture", finished={"fog": "ab"})
    write_about(tmp_path, about)
    assert read_about(tmp_path) == about


def test_about_without_constants_is_of_a_time_when_all_were_cifar_c(tmp_path: Path) -> None:
    write_about(tmp_path, About("tiny", "0f", 3, "1", "texture", constants="imagenet-c"))
    path = tmp_path / "about.json"
    written = json.loads(path.read_text())
    assert written.pop("constants") == "imagenet-c"
    path.write_text(json.dumps(written))
    assert read_about(tmp_path) == ABOUT


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"seed": 1}', "null", "[" * 200_000, "9" * 5_000])
def test_about_that_cannot_be_understood(tmp_path: Path, text: str) -> None:
    (tmp_path / "about.json").write_text(text)
    with pytest.raises(InputError, match=r"about\.json is damaged, or counterpoint did not write it"):
        read_about(tmp_path)


def test_a_folder_is_claimed_once(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "set"
    assert claim(folder, ABOUT) == ABOUT
    write_about(folder, About("tiny", "0f", 3, "1", "texture", finished={"fog": "ab"}))
    assert claim(folder, ABOUT).finished == {"fog": "ab"}


@pytest.mark.parametrize(
    ("about", "message"),
    [
        (About("tiny", "0f", 4, "1", "texture"), "seed 3, not 4; remove it .*, or use another folder"),
        (
            About("tiny", "0f", 3, "2", "texture"),
            "version '1', not '2'; remove the folder /.*, and the set is made again",
        ),
        (About("tiny", "0f", 3, "1", "photographs"), "frost 'texture', not 'photographs'; remove the folder /"),
        (
            About("tiny", "0f", 3, "1", "texture", constants="imagenet-c"),
            "constants 'cifar-c', not 'imagenet-c'; remove the folder /",
        ),
        (About("other", "1f", 3, "1", "texture"), "dataset 'tiny', not 'other'; images_md5 '0f', not '1f'"),
    ],
)
def test_sets_are_not_mixed(tmp_path: Path, about: About, message: str) -> None:
    claim(tmp_path, ABOUT)
    with pytest.raises(InputError, match=message):
        claim(tmp_path, about)


@pytest.mark.parametrize("name", ["fog.npy", "thesis.tex", ".git"])
def test_a_folder_with_something_else_is_not_written_into(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(InputError, match=f"holds {name} but no corrupted set that counterpoint made"):
        claim(tmp_path, ABOUT)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_folder_is_claimed_after_a_kill_in_the_middle_of_it(tmp_path: Path) -> None:
    (tmp_path / ".about.json.123.tmp").write_text("{")
    assert claim(tmp_path, ABOUT) == ABOUT


def test_a_file_gets_its_name_only_when_it_is_finished(tmp_path: Path) -> None:
    path = tmp_path / "fog.npy"

    def be_interrupted() -> None:
        with finished_file(path) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert list(tmp_path.iterdir()) == []
    with finished_file(path) as temporary:
        temporary.write_text("whole")
        assert not path.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["fog.npy"]
    assert path.read_text() == "whole"
