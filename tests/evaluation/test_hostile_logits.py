"""Logits and labels of a run's folder that are not what they should be: the file is named."""

from pathlib import Path

import numpy as np
import pytest

from counterpoint.errors import InputError
from counterpoint.evaluation.logits import map_cells, read_about, read_clean
from counterpoint.storage.arrays import write_array
from tests.made_runs import MakeRun, copied

WRONG: dict[str, np.ndarray] = {
    "two axes": np.zeros((20, 3), np.float32),
    "a NaN": np.full((2, 80, 3), np.nan, np.float32),
    "infinity": np.full((2, 80, 3), np.inf, np.float32),
    "whole numbers": np.zeros((2, 80, 3), np.int64),
    "no images": np.zeros((2, 0, 3), np.float32),
    "another member": np.zeros((3, 80, 3), np.float32),
    "another class": np.zeros((2, 80, 4), np.float32),
    "fewer images": np.zeros((2, 79, 3), np.float32),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ["clean", "fog-1"])
def test_logits_that_are_not_what_they_should_be_are_named(
    make_run: MakeRun, tmp_path: Path, name: str, wrong: str
) -> None:
    run = copied(make_run(), tmp_path / "run")
    write_array(run.folder / "logits" / f"{name}.npy", WRONG[wrong])
    with pytest.raises(InputError, match=r"npy (holds|has) .*remove it if it is there: `counterpoint evaluate"):
        _ = read_clean(run), list(map_cells(lambda cell: cell, run, "corrupted", read_about(run).suites["corrupted"]))


@pytest.mark.parametrize(
    "labels", [np.arange(80), -np.ones(80, int), np.zeros(79, int), np.zeros(80), np.zeros((80, 1), int)]
)
def test_labels_that_are_not_what_they_should_be_are_named(
    make_run: MakeRun, tmp_path: Path, labels: np.ndarray
) -> None:
    run = copied(make_run(), tmp_path / "run")
    write_array(run.folder / "logits" / "labels.npy", labels)
    with pytest.raises(InputError, match=r"labels.npy holds .*, and must hold 80 whole numbers from 0 to 2; remove it"):
        read_clean(run)
