"""Figures on the validation images after an epoch: right, shown everywhere, and without any effect."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from counterpoint.augment.standard import to_unit
from counterpoint.data import parts_of
from counterpoint.errors import InputError
from counterpoint.metrics import ece
from counterpoint.normalisation import NORMALISATION
from counterpoint.runs.checkpoints import latest_checkpoint
from counterpoint.runs.folder import load_run
from counterpoint.training.loop import Options, train
from counterpoint.training.monitoring import validate
from counterpoint.training.network import build_model
from tests.heard import Heard
from tests.small import TINY, coloured_data, held_out_images, noise_data

ON_SPLIT = replace(TINY, train_on="split")
VALIDATING = Options(device="cpu", validate=True)


def test_the_figures_are_those_of_the_averaged_prediction() -> None:
    model = build_model(ON_SPLIT, 3, 3, seed=1).train()
    images = held_out_images(coloured_data(1200), ON_SPLIT)
    assert len(images) > 256, "more than one batch"
    found = validate(model, images, NORMALISATION, torch.device("cpu"))
    assert model.training, "the model is left as it was"
    probs_NK = model.eval().predict(NORMALISATION.apply(to_unit(images.images_NCHW))).double()
    confidence_N, predicted_N = probs_NK.max(dim=1)
    right_N = predicted_N == images.labels_N
    losses = [-math.log(float(probs_NK[i, label])) for i, label in enumerate(images.labels_N.tolist())]
    assert found.error == pytest.approx(1 - right_N.double().mean().item())
    assert found.nll == pytest.approx(sum(losses) / len(losses), rel=1e-5)
    assert found.ece == pytest.approx(ece(confidence_N.numpy(), right_N.numpy()), abs=1e-6)


def test_large_images_go_in_smaller_batches_on_a_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_model(ON_SPLIT, 3, 3, seed=1)
    images = held_out_images(coloured_data(60), ON_SPLIT)
    whole = validate(model, images, NORMALISATION, torch.device("cpu"))
    sizes = []
    model.register_forward_pre_hook(lambda _, views: sizes.append(len(views[0][0])))
    monkeypatch.setattr("counterpoint.devices._PIXELS_AT_ONCE", 9 * 8 * 8)
    parts = validate(model, images, NORMALISATION, torch.device("cpu"))
    assert max(sizes) == 9 // model.num_members == 4
    assert (parts.error, parts.nll) == pytest.approx((whole.error, whole.nll), rel=1e-5)


def test_each_epoch_is_validated_in_the_log_and_for_the_watcher(tmp_path: Path) -> None:
    heard = Heard()
    data = coloured_data(36)
    assert train(ON_SPLIT, tmp_path / "run", data, options=VALIDATING, watcher=heard)
    run = load_run(tmp_path / "run")
    logged = [record["validation"] for record in run.read_log() if record["event"] == "epoch"]
    assert len(logged) == 3
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    model = build_model(ON_SPLIT, 3, 3, seed=0)
    model.load_state_dict(checkpoint.model_tensors)
    last = validate(model, held_out_images(data, ON_SPLIT), NORMALISATION, torch.device("cpu"))
    assert logged[-1] == {"error": last.error, "nll": last.nll, "ece": last.ece}
    assert heard.trainings[0].validated is None
    assert heard.trainings[-1].validated == last


def test_it_changes_nothing_and_a_run_may_go_on_with_or_without_it(tmp_path: Path) -> None:
    data = noise_data(36, 4)
    for name, options in (("without", Options(device="cpu")), ("with", VALIDATING)):
        assert train(ON_SPLIT, tmp_path / name, data, options=options)
    stops = iter([False] * 4 + [True] * 9)
    assert not train(ON_SPLIT, tmp_path / "both", data, options=VALIDATING, should_stop=lambda: next(stops))
    heard = Heard()
    assert train(ON_SPLIT, tmp_path / "both", data, options=Options(device="cpu"), watcher=heard)
    assert heard.trainings[0].validated is not None, "the figures of the last epoch are still known"
    first, *others = (latest_checkpoint(tmp_path / name) for name in ("without", "with", "both"))
    for other in others:
        assert first is not None
        assert other is not None
        assert all(torch.equal(tensor, other.tensors[name]) for name, tensor in first.tensors.items())


def test_it_needs_validation_images(tmp_path: Path) -> None:
    assert parts_of(noise_data(36, 4), TINY).validation is None
    with pytest.raises(
        InputError, match=r"there are no images of tiny to validate on.*leave validate \(--validate\) out"
    ):
        train(TINY, tmp_path / "run", noise_data(36, 4), options=VALIDATING)
    assert not (tmp_path / "run" / "run.json").exists()
