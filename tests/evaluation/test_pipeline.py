"""Evaluation of a real, short run: logits, figures, resumption, and what is refused."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from counterpoint.config import Experiment, to_dict
from counterpoint.corrupt import CORRUPTIONS, find_frost, frost_source, read_cell
from counterpoint.data.cifar import CIFAR10
from counterpoint.data.digits import load_digits
from counterpoint.data.sets import DataSet
from counterpoint.data.split import split_training_images
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import corrupted_set, make_corrupted_set
from counterpoint.evaluation.logits import collect_logits, evaluation_images, read_factors, read_logits
from counterpoint.evaluation.members import load_model, member_logits
from counterpoint.evaluation.ood import OUTSIDE
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.experiments import find_experiment
from counterpoint.metrics import brier, ece, ece_rms, error, nll
from counterpoint.policy import MemberPolicy
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from counterpoint.runs.folder import SCHEMA, Run, load_run, open_run
from counterpoint.training.loop import Options, train
from counterpoint.training.network import build_model
from counterpoint.training.step import total_steps
from tests.heard import Heard

EXPERIMENT: Experiment = replace(find_experiment("digits/quickstart"), epochs=1, batch_size=128, width=4)
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the digits' corrupted set, made once."""
    folder = tmp_path_factory.mktemp("data")
    make_corrupted_set(small_digits(), folder, workers=1)
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "run"
    assert train(EXPERIMENT, folder, small_digits(), seed=3, options=Options(device="cpu"))
    return folder


@pytest.fixture
def run(trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A copy of the trained run, evaluated on few digits."""
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load", lambda *_: small_digits())
    shutil.copytree(trained, tmp_path / "run")
    return load_run(tmp_path / "run")


def small_digits() -> DataSet:
    data = load_digits()
    return replace(data, test=data.test.select(torch.arange(40)))


def evaluate(run: Run, root: Path, **options: Any) -> dict[str, Any]:
    return evaluate_run(run, root, device="cpu", **options)


def test_the_figures_are_those_of_the_network(run: Run, root: Path) -> None:
    results = evaluate(run, root)
    data = small_digits()
    model, _ = load_model(run, data, CPU)
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
        own = [c["members"][i]["nll"] for cells in results["corrupted"]["cells"].values() for c in cells]
        assert member["pooled"]["nll"] == pytest.approx(np.mean(own))
    for way in ("by-corruption", "by-cell", "pooled"):
        assert results["corrupted"]["aggregates"]["ensemble"][way]["error"] == pytest.approx(by_cell)


def test_results_say_what_they_are(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load_outside", lambda *arguments: asked.append(arguments))
    results = evaluate(run, root, cell_images=25)
    assert asked == [("digits", root)]
    assert json.loads((run.folder / "results.json").read_text()) == results
    assert results["config"] == to_dict(EXPERIMENT)
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


def test_an_interrupted_evaluation_goes_on(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = small_digits()
    shifted = corrupted_set(data, root)
    real, calls = member_logits, 0

    def interrupted_after_five(*arguments: Any) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == 6:
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr("counterpoint.evaluation.logits.member_logits", interrupted_after_five)
    with pytest.raises(KeyboardInterrupt):
        collect_logits(run, data, shifted, device=CPU, cell_images=10)
    with pytest.raises(InputError, match=r"is missing or damaged .* `counterpoint evaluate"):
        evaluate(run, root, recompute=True)
    assert not (run.folder / "results.json").exists(), "a half-finished evaluation is not taken for a whole one"
    calls = 100
    heard = Heard()
    collect_logits(run, data, shifted, device=CPU, cell_images=10, watcher=heard)
    assert calls == 100 + 76 - 5, "the clean set and four cells are not computed again"
    assert heard.counts == [(f"evaluating {run.experiment.name}", done, 75) for done in range(4, 76)]
    assert evaluate(run, root, recompute=True)["corrupted"]["images"] == 10


def test_logits_of_another_setting_are_thrown_away(run: Run, root: Path) -> None:
    data = small_digits()
    shifted = corrupted_set(data, root)
    collect_logits(run, data, shifted, device=CPU, cell_images=10)
    collect_logits(run, data, shifted, device=CPU, cell_images=20)
    assert read_logits(run, "fog-1").shape == (4, 20, 10)
    assert read_logits(run, "fog-1").dtype == np.float16
    assert read_logits(run, "clean").dtype == np.float32


@pytest.mark.parametrize("change", ["clean images", "corrupted set"])
def test_logits_of_other_images_are_thrown_away(run: Run, root: Path, change: str) -> None:
    data = small_digits()
    shifted = corrupted_set(data, root)
    collect_logits(run, data, shifted, device=CPU, clean_images=30, cell_images=10)
    for path in (run.folder / "logits").glob("*.npy"):
        path.write_bytes(b"stale")
    if change == "corrupted set":
        shifted = replace(shifted, source={"kind": "official"})
    clean_images = 20 if change == "clean images" else 30
    collect_logits(run, data, shifted, device=CPU, clean_images=clean_images, cell_images=10)
    assert read_logits(run, "clean").shape == (4, clean_images, 10)
    assert read_logits(run, "fog-1").shape == (4, 10, 10)


def test_logits_of_another_checkpoint_are_thrown_away(run: Run, root: Path) -> None:
    data = small_digits()
    shifted = corrupted_set(data, root)
    collect_logits(run, data, shifted, device=CPU, cell_images=10)
    before = read_logits(run, "clean")
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    retrained = {name: tensor * 1.5 if name.endswith(".s") else tensor for name, tensor in checkpoint.tensors.items()}
    save_checkpoint(run.folder, Checkpoint(retrained, checkpoint.step, checkpoint.seconds))
    collect_logits(run, data, shifted, device=CPU, cell_images=10)
    assert not np.allclose(read_logits(run, "clean"), before)


def test_what_the_network_knows_is_kept_beside_the_logits(run: Run, root: Path) -> None:
    data = small_digits()
    model, _ = load_model(run, data, CPU)
    outside = replace(data, test=data.test.select(torch.arange(40).flip(0)))
    collect_logits(run, data, corrupted_set(data, root), device=CPU, cell_images=10, outside=outside)
    assert read_logits(run, "ood") == pytest.approx(read_logits(run, "clean")[:, ::-1], rel=1e-2, abs=1e-2)
    assert read_logits(run, "ood").dtype == np.float16
    for kind, layers in read_factors(run).items():
        expected = [p.detach().numpy() for name, p in model.named_parameters() if name.split(".")[-1] == kind]
        assert len(expected) > 5
        for found, layer in zip(layers, expected, strict=True):
            np.testing.assert_array_equal(found, layer)


def test_all_that_was_asked_for_reaches_the_network(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("counterpoint.evaluation.pipeline.load_outside", lambda *_: small_digits())
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


def test_an_unfinished_run_is_refused(tmp_path: Path) -> None:
    data = small_digits()
    train(EXPERIMENT, tmp_path / "run", data, options=Options(device="cpu", max_minutes=0.0))
    with pytest.raises(InputError, match=r"is not finished: 1 of 11 steps are done; go on with"):
        load_model(load_run(tmp_path / "run"), data, CPU)


def test_a_run_on_the_split_is_evaluated_on_its_held_out_images() -> None:
    data = load_digits()
    on_split = Run(Path(), replace(EXPERIMENT, train_on="split"), {"seed": 0})
    part, images = evaluation_images(on_split, data)
    assert (part, len(images)) == ("validation", 449)


def test_the_labels_on_the_split_are_those_of_the_held_out_images(root: Path, tmp_path: Path) -> None:
    data, experiment = small_digits(), replace(EXPERIMENT, train_on="split", num_members=None, policy=MemberPolicy())
    model = build_model(experiment, 10, 1, seed=0).eval()
    run = open_run(tmp_path / "run", experiment, seed=0, options={}, environment={})
    steps = total_steps(experiment, len(split_training_images(data, experiment)[0]))
    save_checkpoint(
        run.folder, Checkpoint({f"model.{name}": tensor for name, tensor in model.state_dict().items()}, steps, 0.0)
    )
    collect_logits(run, data, corrupted_set(data, root), device=CPU, clean_images=30, cell_images=10)
    held_out = split_training_images(data, experiment)[1].images.select(torch.arange(30))
    assert np.array_equal(read_logits(run, "labels"), held_out.labels_N.numpy())
    with torch.no_grad():
        expected_MNK = model(((held_out.images_NCHW / 255 - 0.5) / 0.5)[None]).numpy()
    assert read_logits(run, "clean") == pytest.approx(expected_MNK, rel=1e-4, abs=1e-5)


def test_folders_without_runs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no run \(there is no run.json\)"):
        load_run(tmp_path)
    for other in ('{"schema": 99}', f'{{"schema": {SCHEMA}}}'):
        (tmp_path / "run.json").write_text(other)
        with pytest.raises(InputError, match="is not a run of this version"):
            load_run(tmp_path)
    (tmp_path / "run.json").write_text('{"sch')
    with pytest.raises(InputError, match="is not a whole JSON file"):
        load_run(tmp_path)
