"""A data folder with a corrupted set, and a real, short run."""

import shutil
from pathlib import Path

import pytest

from counterpoint.evaluation.corrupted_set import make_corrupted_set
from counterpoint.runs.folder import Run, load_run
from counterpoint.training.loop import Options, train
from tests.small import QUICK, few_digits


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the digits' corrupted set, made once."""
    folder = tmp_path_factory.mktemp("data")
    make_corrupted_set(few_digits(40), folder, workers=1)
    return folder


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(QUICK, folder, few_digits(40), seed=3, options=Options(device="cpu"))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the trained run, evaluated on few digits."""
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load", lambda *_: few_digits(40))
    shutil.copytree(trained, tmp_path / "run")
    return load_run(tmp_path / "run")
