"""An experiment is trained on its own images only, read as it says."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.data import UserImages, load, load_images
from counterpoint.errors import InputError
from counterpoint.own_images import OwnImages
from counterpoint.training.loop import Options, train
from counterpoint.training.run_images import read_images
from tests.images.collection import write_collection
from tests.small import TINY, noise_data

OWN = replace(TINY, dataset="images", images=OwnImages(size=8), train_on="split", steps=1)


@pytest.fixture
def images(tmp_path: Path) -> UserImages:
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "mine.npz", images=pixels, labels=[0, 1] * 20)
    return load_images(tmp_path / "mine.npz", size=8, cache=tmp_path / "cache" / "images")


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"images": OwnImages(size=16)}, "size=16, grey=False, val=0.15, test=0.15 and seed=0"),
        ({"images": OwnImages(size=8, grey=True)}, "size=8, grey=True, val=0.15"),
        ({"images": OwnImages(size=8, val=0.2)}, "val=0.2, test=0.15"),
        ({"images": OwnImages(size=8, test=0.2)}, "val=0.15, test=0.2 "),
        ({"images": OwnImages(size=8, split_seed=1)}, "test=0.15 and seed=1"),
        ({"train_on": "all"}, "val=0.0, test=0.15"),
    ],
    ids=["size", "grey", "val", "test", "seed", "all"],
)
def test_images_that_were_loaded_in_another_way_are_refused(
    tmp_path: Path, images: UserImages, changes: Any, wanted: str
) -> None:
    """Or else `evaluate`, which reads them as the experiment says, would refuse the run after hours of training."""
    with pytest.raises(InputError, match=f"images of mine were loaded with size=8, grey=.* wants .*{wanted}.*; load"):
        train(replace(OWN, **changes), tmp_path / "run", images, options=Options(device="cpu"))
    assert not (tmp_path / "run" / "run.json").exists()


@pytest.mark.parametrize("train_on", ["split", "all"])
def test_images_as_the_experiment_wants_them_are_those_of_the_run(
    tmp_path: Path, images: UserImages, train_on: Any
) -> None:
    experiment = replace(OWN, train_on=train_on)
    data = load_images(images.source, size=8, val=0.15 if train_on == "split" else 0, cache=tmp_path / "cache/images")
    assert train(experiment, tmp_path / "run", data, options=Options(device="cpu"))
    again = read_images(experiment, images.source, tmp_path / "cache")
    assert (again.key, again.keys) == (data.key, data.keys)


def test_a_run_among_its_own_pictures_is_refused(tmp_path: Path) -> None:
    """Or else `evaluate` would take the run for a class, and refuse it."""
    write_collection(tmp_path / "photos", {"": 12})
    data = load_images(tmp_path / "photos", size=8, cache=tmp_path / "cache" / "images")
    with pytest.raises(InputError, match=r"photos/run lies in .*photos, where every folder and file is taken for"):
        train(OWN, tmp_path / "photos" / "run", data, options=Options(device="cpu"))
    assert not (tmp_path / "photos" / "run").exists()


def test_data_of_another_name_are_refused(tmp_path: Path, images: UserImages) -> None:
    for experiment, data, words in (
        (TINY, images, "dataset is digits, and the data are your own images, mine; "),
        (OWN, noise_data(20, 2), "dataset is images, and the data are tiny; "),
        (replace(TINY, dataset="cifar10"), load("digits"), "dataset is cifar10, and the data are digits; "),
    ):
        with pytest.raises(InputError, match=f"^{words}give the experiment the data that it names, or name these$"):
            train(experiment, tmp_path / "run", data, options=Options(device="cpu"))


def test_images_of_your_own_may_be_called_like_a_data_set(tmp_path: Path) -> None:
    """Such as a folder cifar10 with CIFAR's pictures."""
    pixels = np.random.default_rng(0).integers(0, 256, (40, 8, 8, 3), np.uint8)
    np.savez(tmp_path / "cifar10.npz", images=pixels, labels=[0, 1] * 20)
    data = load_images(tmp_path / "cifar10.npz", size=8, cache=tmp_path / "cache" / "images")
    assert data.name == "cifar10"
    assert train(OWN, tmp_path / "run", data, options=Options(device="cpu"))
