"""What run.json says of the images and the steps of a training."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.data import load, parts_of
from counterpoint.errors import InputError
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from counterpoint.training.network import describe_run
from tests.small import TINY, noise_data

EARLIER = Path(__file__).parents[1] / "fixtures" / "run-of-98b0d55" / "run"


def test_a_training_describes_its_run(tmp_path: Path) -> None:
    data = noise_data(36, 4)
    train(TINY, tmp_path / "run", data, options=Options(device="cpu"))
    assert json.loads((tmp_path / "run" / "run.json").read_text())["description"] == {
        "classes": list(data.train.classes),
        "channels": 3,
        "height": 8,
        "width": 8,
        "training_images": 36,
        "total_steps": 15,
        "normalisation": {"mean": 0.5, "std": 0.5},
    }


def test_the_images_held_out_are_not_trained_on(tmp_path: Path) -> None:
    train(replace(TINY, train_on="split"), tmp_path / "run", noise_data(54, 4), options=Options(device="cpu"))
    description = load_run(tmp_path / "run").description
    assert (description.training_images, description.total_steps) == (36, 15)


def test_a_run_of_an_earlier_version_is_described_from_its_data(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(EARLIER, folder)
    before = load_run(folder)
    description = describe_run(before, parts_of(load("digits"), before.experiment)).description
    assert (description.channels, description.training_images, description.total_steps) == (1, 898, 30)
    assert load_run(folder).description == description
    assert load_run(folder).record.items() >= before.record.items()


def test_a_run_of_a_librarys_model_is_not_described_by_asking_the_library(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    shutil.copytree(EARLIER, folder)
    record = json.loads((folder / "run.json").read_text())
    record["experiment"]["model"] = "hf/google/vit"
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(
        InputError,
        match=r"run.json does not describe the hf/google/vit that was trained; continue it with `make_fixture.py`",
    ):
        describe_run(load_run(folder), parts_of(load("digits"), TINY))


def test_other_data_than_the_runs_are_refused(tmp_path: Path) -> None:
    stopped = Options(device="cpu", max_minutes=0.0)
    assert not train(TINY, tmp_path / "run", noise_data(36, 4), options=stopped)
    with pytest.raises(
        InputError,
        match=r"was begun with \(training_images: 36 → 40\); name its folder with --data, root=… in Python, or",
    ):
        train(TINY, tmp_path / "run", noise_data(40, 4), options=stopped)
