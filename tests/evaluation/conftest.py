"""A data folder with a corrupted set, and real, short runs."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from counterpoint.data.sets import DataSet
from counterpoint.evaluation.suites import make_corrupted_set
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.made_runs import MakeRun, evaluated
from tests.small import QUICK, few_digits


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the digits' corrupted set, made once."""
    folder = tmp_path_factory.mktemp("data")
    make_corrupted_set(few_digits(40), folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def runs(make_run: MakeRun) -> list[Run]:
    """Two runs, evaluated on the same images."""
    made = [make_run(seed=seed) for seed in (1, 2)]
    for run in made:
        evaluated(run)
    return made


@pytest.fixture
def run(short_run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the trained run, evaluated on few digits."""
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: few_digits(40))
    shutil.copytree(short_run.folder, tmp_path / "run")
    return load_run(tmp_path / "run")


@pytest.fixture(scope="session")
def split_data() -> DataSet:
    """90 training images, of which 30 are held out on the split, and 40 test images; evaluated as CIFAR is."""
    data = few_digits(40)
    return replace(data, train=data.train.first(90), reported="validation")


@pytest.fixture(scope="session")
def trained_on_split(split_data: DataSet, tmp_path_factory: pytest.TempPathFactory) -> Path:
    experiment = replace(QUICK, train_on="split", batch_size=20, warmup_steps=0)
    folder = tmp_path_factory.mktemp("runs") / "split"
    assert train(experiment, folder, split_data, seed=3, options=Options(device="cpu"))
    return folder


@pytest.fixture
def split_run(trained_on_split: Path, split_data: DataSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of a run that was trained on the split, evaluated on its few digits."""
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: split_data)
    shutil.copytree(trained_on_split, tmp_path / "split")
    return load_run(tmp_path / "split")
