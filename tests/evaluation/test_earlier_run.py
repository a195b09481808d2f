"""A run that was begun before the redesign into rooms (commit 98b0d55) can be brought to its end and to a report."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from counterpoint.evaluation.comparison import compare_run
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.records.files import Evaluated, read_evaluated
from counterpoint.report import write_report
from counterpoint.runs.folder import load_run
from counterpoint.storage.arrays import write_array
from counterpoint.training.loop import Options, train
from tests.small import few_digits

EARLIER = Path(__file__).parents[1] / "fixtures" / "run-of-98b0d55" / "run"


def know_something(logits: Path) -> None:
    """After its two epochs the network is no better than chance, and nothing can be fitted to it."""
    clean_MNK, labels_N = np.load(logits / "clean.npy"), np.load(logits / "labels.npy")
    noise_MNK = np.random.default_rng(0).normal(size=clean_MNK.shape)
    write_array(logits / "clean.npy", (2 * np.eye(10)[labels_N] + noise_MNK).astype(np.float32))


def test_it_is_evaluated_recalibrated_compared_and_reported(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, folder, other = few_digits(40), tmp_path / "run", tmp_path / "other"
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: data)
    shutil.copytree(EARLIER, folder)
    experiment, results = load_run(folder).experiment, []
    for place, seed in ((folder, 5), (other, 6)):
        assert train(experiment, place, data, seed=seed, options=Options(device="cpu"))
        results.append(evaluate_run(load_run(place), root, device="cpu", cell_images=5))
    know_something(folder / "logits")
    recalibrated = recalibrate_run(load_run(folder))
    compared = compare_run(folder, [other])

    assert read_evaluated(folder) == Evaluated(results[0], recalibrated, compared)
    segments = results[0].trained.segments
    assert [(segment.step, segment.engine) for segment in segments] == [(0, "eager"), (17, "eager")]
    assert results[0].seed == 5
    assert recalibrated.fitted_on.images.images == 449
    assert compared.against[0].made_from == results[1].made_from
    assert compared.against[0].corrupted is not None
    write_report([folder, other], tmp_path / "report.html")
    assert "digits/unfinished" in (tmp_path / "report.html").read_text()
