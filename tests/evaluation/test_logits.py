"""Logits on disk: whose they are, when they are computed again, and what is kept beside them."""

from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
import torch

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.data.digits import load_digits
from counterpoint.data.sets import DataSet
from counterpoint.data.split import split_training_images
from counterpoint.devices import Precision, describe_precision
from counterpoint.errors import InputError
from counterpoint.evaluation.corrupted_set import CorruptedSet, corrupted_set
from counterpoint.evaluation.logits import collect_logits, evaluation_images, read_about, read_factors, read_logits
from counterpoint.evaluation.members import fold_members, load_model, member_logits
from counterpoint.evaluation.pipeline import evaluate_run
from counterpoint.policy import MemberPolicy
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from counterpoint.runs.folder import Run, open_run
from counterpoint.training.description import describe_run
from counterpoint.training.network import build_model
from counterpoint.training.step import total_steps
from tests.heard import Heard
from tests.small import QUICK, TINY, few_digits, noise_data

CPU = torch.device("cpu")


def test_an_interrupted_evaluation_goes_on(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = few_digits(40)
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
        evaluate_run(run, root, device="cpu", recompute=True)
    assert not (run.folder / "results.json").exists(), "a half-finished evaluation is not taken for a whole one"
    calls = 100
    heard = Heard()
    collect_logits(run, data, shifted, device=CPU, cell_images=10, watcher=heard)
    assert calls == 100 + 76 - 5, "the clean set and four cells are not computed again"
    assert heard.counts == [(f"evaluating {run.experiment.name}", done, 75) for done in range(4, 76)]
    assert evaluate_run(run, root, device="cpu", recompute=True)["corrupted"]["images"] == 10


def test_logits_of_another_setting_are_thrown_away(run: Run, root: Path) -> None:
    data = few_digits(40)
    shifted = corrupted_set(data, root)
    collect_logits(run, data, shifted, device=CPU, cell_images=10)
    collect_logits(run, data, shifted, device=CPU, cell_images=20)
    assert read_logits(run, "fog-1").shape == (4, 20, 10)
    assert read_logits(run, "fog-1").dtype == np.float16
    assert read_logits(run, "clean").dtype == np.float32


@pytest.mark.parametrize("change", ["clean images", "corrupted set"])
def test_logits_of_other_images_are_thrown_away(run: Run, root: Path, change: str) -> None:
    data = few_digits(40)
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
    data = few_digits(40)
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
    data = few_digits(40)
    model, _ = load_model(run, CPU)
    outside = replace(data, test=data.test.select(torch.arange(40).flip(0)))
    collect_logits(run, data, corrupted_set(data, root), device=CPU, cell_images=10, outside=outside)
    assert read_logits(run, "ood") == pytest.approx(read_logits(run, "clean")[:, ::-1], rel=1e-2, abs=1e-2)
    assert read_logits(run, "ood").dtype == np.float16
    for kind, layers in read_factors(run).items():
        expected = [p.detach().numpy() for name, p in model.named_parameters() if name.split(".")[-1] == kind]
        assert len(expected) > 5
        for found, layer in zip(layers, expected, strict=True):
            np.testing.assert_array_equal(found, layer)


def test_a_run_on_the_split_is_evaluated_on_its_held_out_images() -> None:
    data = load_digits()
    on_split = Run(Path(), replace(QUICK, train_on="split"), {"seed": 0})
    part, images = evaluation_images(on_split, data)
    assert (part, len(images)) == ("validation", 449)


def test_the_labels_on_the_split_are_those_of_the_held_out_images(root: Path, tmp_path: Path) -> None:
    data, experiment = few_digits(40), replace(QUICK, train_on="split", num_members=None, policy=MemberPolicy())
    model = build_model(experiment, 10, 1, seed=0).eval()
    run = describe_run(open_run(tmp_path / "run", experiment, seed=0, options={}, environment={}), data)
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


def tiny_run(folder: Path) -> tuple[Run, DataSet, CorruptedSet]:
    """A run that counts as finished, its data set, and a corrupted set in the official layout."""
    data = noise_data(30, 10, test=5)
    (folder / "corrupted").mkdir()
    for i, name in enumerate(CORRUPTIONS):
        np.save(
            folder / "corrupted" / f"{name}.npy", np.random.default_rng(i).integers(0, 256, (25, 8, 8, 3), np.uint8)
        )
    experiment = replace(TINY, num_members=4, epochs=1, batch_size=30, policy=MemberPolicy())
    run = describe_run(open_run(folder / "run", experiment, seed=0, options={}, environment={}), data)
    model = build_model(experiment, 10, 3, seed=0).train()
    with torch.no_grad():
        model(torch.randn(4, 64, 3, 8, 8, generator=torch.Generator().manual_seed(0)))  # for BatchNorm's statistics
    save_checkpoint(
        run.folder, Checkpoint({f"model.{name}": tensor for name, tensor in model.state_dict().items()}, 1, 0.0)
    )
    return run, data, CorruptedSet(folder / "corrupted", 5, {})


def test_the_precision_is_recorded_and_another_one_starts_over(tmp_path: Path) -> None:
    run, data, shifted = tiny_run(tmp_path)
    model, _ = load_model(run, CPU)
    fog_NCHW = torch.from_numpy(np.array(shifted.read("fog", 2))).permute(0, 3, 1, 2)
    fog = {}
    for precision in get_args(Precision):
        collect_logits(run, data, shifted, device=CPU, precision=precision)
        assert read_about(run)["precision"] == describe_precision(precision, CPU)
        fog[precision] = read_logits(run, "fog-2")
        expected = member_logits(fold_members(model, CPU, precision), fog_NCHW).astype(np.float16)
        assert np.array_equal(fog[precision], expected)
    assert np.array_equal(fog["headline"], fog["strict"])
    assert not np.array_equal(fog["headline"], fog["bf16"])
