"""scores.npz: what is written comes back, and says which logits it was made from."""

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.scores import OutsideScores, RunScores, read_scores, write_scores
from counterpoint.metrics import ImageScores, image_scores
from counterpoint.records.images import Images, MadeFrom, OutsideImages, Shift, Source
from counterpoint.storage.arrays import read_arrays, write_arrays


def some_scores(seed: int, images: int = 6, groups: np.ndarray | None = None) -> ImageScores:
    rng = np.random.default_rng(seed)
    return image_scores(rng.dirichlet(np.ones(4), size=images), rng.integers(4, size=images), groups)


def assert_same(found: ImageScores, expected: ImageScores) -> None:
    for field in fields(ImageScores):
        values, wanted = getattr(found, field.name), getattr(expected, field.name)
        if wanted is None:
            assert values is None
            continue
        assert values.dtype == wanted.dtype
        assert values == pytest.approx(wanted, rel=1e-6), "float32 on disk"


def test_scores_come_back(tmp_path: Path) -> None:
    shift = Shift(Source("regenerated", 0, "1", "texture"), 6, "test", ("fog", "snow"), (2, 4))
    made_from = MadeFrom("0123", "fp32", Images("digits", "test", 9), shift)
    pairs = np.arange(6) // 2
    cells = {name: [some_scores(10 * i + j, 6, pairs) for j in range(2)] for i, name in enumerate(("fog", "snow"))}
    clean = some_scores(99, 9)
    write_scores(tmp_path, RunScores(made_from, clean, cells))
    found = read_scores(tmp_path)
    assert found.made_from == made_from
    assert_same(found.clean, clean)
    assert list(found.cells) == ["fog", "snow"]
    for name, of_corruption in cells.items():
        for read, written in zip(found.cells[name], of_corruption, strict=True):
            assert_same(read, written)
    with np.load(tmp_path / "scores.npz") as arrays:
        assert "fog-4/nll" in arrays, "a cell is named by its severity"
        assert arrays["fog-4/nll"].dtype == np.float32


def test_a_run_without_cells_has_clean_scores(tmp_path: Path) -> None:
    made_from = MadeFrom("0123", "fp32", Images("digits", "validation", 9), None)
    write_scores(tmp_path, RunScores(made_from, some_scores(1, 9), {}))
    found = read_scores(tmp_path)
    assert (found.made_from, found.cells) == (made_from, {})
    assert_same(found.clean, some_scores(1, 9))


def test_confidence_on_outside_images_comes_back_to_the_last_bit(tmp_path: Path) -> None:
    made_from = MadeFrom("0123", "fp32", Images("digits", "validation", 9), None)
    near_one = 1 - np.arange(1, 10, dtype=np.float64) * 1e-10  # in float32 all are 1
    sets = {"фото": (OutsideImages(9, "a key"), near_one[::-1]), "known": (OutsideImages(2), np.array([0.3, 0.25]))}
    write_scores(tmp_path, RunScores(made_from, some_scores(1, 9), {}, outside=OutsideScores(near_one, sets)))
    found = read_scores(tmp_path).outside
    assert found is not None
    assert found.known_N.tolist() == near_one.tolist()
    assert {name: (images, values.tolist()) for name, (images, values) in found.sets.items()} == {
        name: (images, values.tolist()) for name, (images, values) in sets.items()
    }


@pytest.mark.parametrize("changed", ["known/confidence", "outside/known/confidence"])
@pytest.mark.parametrize("values", [np.ones(3), np.full(2, np.nan), None])
def test_damaged_confidence_on_outside_images(tmp_path: Path, changed: str, values: np.ndarray | None) -> None:
    made_from = MadeFrom("0123", "fp32", Images("digits", "validation", 2), None)
    outside = OutsideScores(np.ones(2), {"known": (OutsideImages(2), np.ones(2))})
    write_scores(tmp_path, RunScores(made_from, some_scores(1, 2), {}, outside=outside))
    arrays = read_arrays(tmp_path / "scores.npz", "")
    del arrays[changed]
    write_arrays(tmp_path / "scores.npz", arrays | ({changed: values} if values is not None else {}))
    with pytest.raises(InputError, match=r"scores\.npz is damaged or is not a scores file .*--recompute"):
        read_scores(tmp_path)
