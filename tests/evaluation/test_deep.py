"""A deep ensemble from its training to its report, by the ordinary functions."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from counterpoint.augment.standard import to_unit
from counterpoint.data.sets import DataSet
from counterpoint.evaluation.members import load_model
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.evaluation.recalibration import recalibrate_run
from counterpoint.evaluation.suites import CORRUPTED, VALIDATION_EXTRA
from counterpoint.nn import extract_member
from counterpoint.normalisation import NORMALISATION
from counterpoint.policy import MemberPolicy
from counterpoint.records.files import read_evaluated
from counterpoint.report import render
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from tests.made_runs import saved
from tests.small import QUICK, held_out_images

DEEP = replace(QUICK, ensemble="deep", num_members=2, train_on="split", batch_size=20, policy=MemberPolicy())


def test_from_training_to_report(
    split_data: DataSet, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterpoint.training.run_images.load", lambda *_: split_data)
    assert train(DEEP, tmp_path / "deep", split_data, seed=3, options=Options(device="cpu"))
    run = load_run(tmp_path / "deep")
    results = evaluate_run(run, root, suites=(CORRUPTED, VALIDATION_EXTRA), device="cpu", cell_images=20)
    assert results.config["ensemble"] == "deep"
    assert results.collapse is not None
    assert (results.collapse.r, results.collapse.s) == (None, None)
    assert results.health is not None
    assert [(epoch.spread_r, epoch.spread_s) for epoch in results.health.epochs] == [(None, None)]

    model, _ = load_model(run, torch.device("cpu"))
    images_NCHW = NORMALISATION.apply(to_unit(held_out_images(split_data, DEEP).images_NCHW))
    with torch.no_grad():
        alone = [extract_member(model, i)(images_NCHW).numpy() for i in range(2)]
    np.testing.assert_allclose(saved(run, "clean"), np.stack(alone), rtol=1e-4, atol=1e-5)

    recalibrated = recalibrate_run(run)
    assert {len(way.recalibration.log_temperatures) for way in recalibrated.ways.values()} == {1, 2}
    page = render([read_evaluated(run.folder)])
    assert "an ensemble of 2 separate networks" in page
    assert "deep ensemble: 2 separate networks" in page
    for word in ("BatchEnsemble", "factors r and s", "shared weights"):
        assert word not in page
