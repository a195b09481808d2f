"""Evaluation of a real, short run: logits, figures, resumption, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from counterpoint.config import to_dict
from counterpoint.corrupt import CORRUPTIONS, find_frost, frost_source, read_cell
from counterpoint.data.cifar import CIFAR10
from counterpoint.errors import InputError
from counterpoint.evaluation.members import load_model
from counterpoint.evaluation.ood import OUTSIDE
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.metrics import brier, ece, ece_rms, error, nll
from counterpoint.runs.folder import Run
from tests.heard import Heard
from tests.small import QUICK, few_digits

CPU = torch.device("cpu")


def evaluate(run: Run, root: Path, **options: Any) -> dict[str, Any]:
    return evaluate_run(run, root, device="cpu", **options)


def test_the_figures_are_those_of_the_network(run: Run, root: Path) -> None:
    results = evaluate(run, root)
    data = few_digits(40)
    model, _ = load_model(run, CPU)
    labels = data.test.labels_N.numpy()

    def members(images_NCHW: torch.Tensor) -> np.ndarray:
        return model.predict_members((images_NCHW / 255 - 0.5) / 0.5).double().numpy()

    clean = members(data.test.images_NCHW)
    for probs, figures in [
        (clean.mean(0), results["clean"]["ensemble"]),
        *zip(clean, results["clean"]["members"], strict=True),
    ]:
        confidence, correct = probs.max(1), probs.argmax(1) == labels
        assert figures["error"] == pytest.approx(error(probs, labels))
        assert figures["nll"] == pytest.approx(nll(probs, labels), rel=1e-4)
        assert figures["brier"] == pytest.approx(brier(probs, labels), rel=1e-4)
        assert figures["ece_width15"] == pytest.approx(ece(confidence, correct), abs=1e-5)
        assert figures["ece_rms_mass15"] == pytest.approx(ece_rms(confidence, correct, binning="mass"), abs=1e-5)

    fog = torch.from_numpy(read_cell(root / "regenerated" / "digits-C-seed0", "fog", 3, 40).copy()).permute(0, 3, 1, 2)
    cell = results["corrupted"]["cells"]["fog"][2]
    assert cell["ensemble"]["nll"] == pytest.approx(nll(members(fog).mean(0), labels), rel=1e-3)  # saved in float16
    by_cell = np.mean([c["ensemble"]["error"] for cells in results["corrupted"]["cells"].values() for c in cells])
    for i, member in enumerate(results["corrupted"]["aggregates"]["members"]):
        member_nll = [c["members"][i]["nll"] for cells in results["corrupted"]["cells"].values() for c in cells]
        assert member["pooled"]["nll"] == pytest.approx(np.mean(member_nll))
    for way in ("by-corruption", "by-cell", "pooled"):
        assert results["corrupted"]["aggregates"]["ensemble"][way]["error"] == pytest.approx(by_cell)


def test_results_say_what_they_are(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load_outside", lambda *arguments: asked.append(arguments))
    results = evaluate(run, root, cell_images=25)
    assert asked == [("digits", root)]
    assert json.loads((run.folder / "results.json").read_text()) == results
    assert results["config"] == to_dict(QUICK)
    assert results["evaluated_on"] == {"dataset": "digits", "part": "test", "images": 40}
    frost = frost_source(find_frost(root))
    assert results["corrupted"]["source"] == {"kind": "regenerated", "seed": 0, "version": "1", "frost": frost}
    assert results["corrupted"]["images"] == 25
    assert list(results["corrupted"]["cells"]) == list(CORRUPTIONS)
    assert results["run"]["seed"] == 3
    scores = np.load(run.folder / "scores.npz")
    assert scores["clean/confidence"].shape == (40,)
    assert scores["snow-5/correct"].dtype == bool
    assert (~scores["snow-5/correct"]).mean() == pytest.approx(
        results["corrupted"]["cells"]["snow"][4]["ensemble"]["error"]
    )


def test_recompute_needs_no_network_and_no_images(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(run, root, cell_images=10)
    shutil.rmtree(run.folder / "checkpoints")
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load", lambda *_: pytest.fail("it read the data set"))
    again = evaluate(run, root, recompute=True)
    assert again | {"evaluation": None} == first | {"evaluation": None}


def test_all_that_was_asked_for_reaches_the_network(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load_outside", lambda *_: few_digits(40))
    monkeypatch.setitem(OUTSIDE, "digits", CIFAR10)
    results = evaluate(run, root, clean_images=15, cell_images=10, precision="bf16")
    assert results["evaluation"]["precision"] == "bf16 activations and convolutions, fp32 linear layers"
    assert (results["evaluated_on"]["images"], results["corrupted"]["images"]) == (15, 10)
    assert results["ood"]["images"] == 15
    assert results["ood"]["auroc"]["ensemble"] == pytest.approx(0.5, abs=0.02), "they are the same images"


def test_what_can_be_refused_is_refused_first(run: Run, root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing/results\.json does not exist"):
        evaluate(run, root, against=[tmp_path / "nothing"])
    with pytest.raises(InputError, match="was trained on all images, so none are left to fit a temperature on"):
        evaluate(run, root, recalibrate=True)
    assert not (run.folder / "logits").exists()


def test_the_watcher_hears_of_the_corrupted_set_and_of_the_cells(run: Run, tmp_path: Path) -> None:
    heard = Heard()
    evaluate(run, tmp_path / "without a set", cell_images=2, watcher=heard)
    making, evaluating = "making digits-C-seed0", f"evaluating {run.experiment.name}"
    assert list(dict.fromkeys(work for work, _, _ in heard.counts)) == [making, evaluating]
    assert (making, 3000, 3000) in heard.counts, "40 images in each of 75 cells"
    assert (evaluating, 75, 75) in heard.counts
