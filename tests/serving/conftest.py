"""A short real run on the split, evaluated and recalibrated, and pictures of digits it did not see."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from PIL import Image

from counterpoint.data.sets import DataSet
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.policy import MemberPolicy
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.small import QUICK, few_digits


@pytest.fixture(scope="session")
def digits() -> DataSet:
    data = few_digits(40)
    return replace(data, train=data.train.first(300), reported="validation")


@pytest.fixture(scope="session")
def bare_run(digits: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Trained, and nothing else."""
    experiment = replace(
        QUICK, train_on="split", batch_size=20, policy=MemberPolicy(flip=False), init_std=0.1, epochs=15
    )
    folder = tmp_path_factory.mktemp("serving") / "bare"
    assert train(experiment, folder, digits, seed=3, options=Options(device="cpu"))
    return load_run(folder)


@pytest.fixture
def run(bare_run: Run, digits: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Evaluated on its validation images, and recalibrated."""
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: digits)
    shutil.copytree(bare_run.folder, tmp_path / "run")
    run = load_run(tmp_path / "run")
    evaluate_run(run, tmp_path, suites=(), device="cpu")
    recalibrate_run(run)
    return run


@pytest.fixture(scope="session")
def pictures(digits: DataSet, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("pictures")
    for i, image_CHW in enumerate(digits.test.images_NCHW[:5]):
        Image.fromarray(image_CHW[0].numpy()).save(folder / f"{i}.png")
    return sorted(folder.iterdir())
