import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterpoint.metrics import ece
from counterpoint.recalibration.apply import apply
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import RESULTS, read_results, write_record
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import Correction, find_promised
from counterpoint.serving.predict import Predictor
from counterpoint.serving.web.facts import Diagram, find_diagram

OWN = Correction(NONE, "none")


@pytest.fixture
def copy(whole_run: Run, tmp_path: Path) -> Run:
    shutil.copytree(whole_run.folder, tmp_path / "run")
    return load_run(tmp_path / "run")


def test_own_confidences_have_the_bins_of_the_results(whole_run: Run, whole_predictor: Predictor) -> None:
    results = read_results(whole_run.folder / RESULTS)
    assert results.clean.reliability is not None
    expected = Diagram(results.clean.reliability.width15, results.evaluated_on, recalibrated=False)
    assert find_diagram(whole_run, OWN, whole_predictor.weights) == expected


def test_recalibrated_confidences_have_bins_of_their_own(whole_run: Run, whole_predictor: Predictor) -> None:
    correction = find_promised(whole_run.folder)
    assert correction.recalibration != NONE
    found = find_diagram(whole_run, correction, whole_predictor.weights)
    assert isinstance(found, Diagram)
    logits_MNK = np.load(whole_run.folder / "logits" / "clean.npy").astype(np.float64)
    labels_N = np.load(whole_run.folder / "logits" / "labels.npy")
    probs_NK = apply(correction.recalibration, logits_MNK).ensemble_NK
    by_hand = ece(probs_NK.max(axis=1), probs_NK.argmax(axis=1) == labels_N, bins=15, binning="width")
    total = sum(row.count for row in found.bins)
    assert total == found.images.images == len(labels_N)
    assert sum(row.count * abs(row.accuracy - row.confidence) for row in found.bins) / total == pytest.approx(by_hand)
    assert found.recalibrated
    assert found != find_diagram(whole_run, OWN, whole_predictor.weights)


def test_why_there_is_none(bare_run: Run, copy: Run, whole_predictor: Predictor) -> None:
    correction, weights = find_promised(copy.folder), whole_predictor.weights
    assert find_diagram(bare_run, OWN, weights) == "There is no results.json; counterpoint evaluate RUN makes it."
    assert "of other weights" in str(find_diagram(copy, OWN, "others"))
    shutil.rmtree(copy.folder / "logits")
    assert "no bins of recalibrated confidence" in str(find_diagram(copy, correction, weights))
    results = read_results(copy.folder / RESULTS)
    write_record(copy.folder / RESULTS, replace(results, clean=replace(results.clean, reliability=None)))
    assert "results.json has no bins" in str(find_diagram(copy, OWN, weights))
