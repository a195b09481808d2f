"""Runs with made-up logits: what follows from an evaluation can be tested without a network."""

import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.config import to_dict
from counterpoint.evaluation.logits import cell_file, labels_file
from counterpoint.evaluation.results import write_results
from counterpoint.evaluation.suites import CORRUPTED, SUITES, Suite
from counterpoint.experiments import find_experiment
from counterpoint.policy import MemberPolicy
from counterpoint.records.codec import encode
from counterpoint.records.images import Images, Shift, Source
from counterpoint.records.results import Results
from counterpoint.runs.checkpoints import Checkpoint, latest_checkpoint, save_checkpoint
from counterpoint.runs.folder import Run, load_run
from counterpoint.storage.arrays import write_array, write_arrays
from counterpoint.storage.files import read_json, write_json

CLASSES, IMAGES, CELL_IMAGES = 3, 80, 30
SOURCE = Source("regenerated", 0, "1", "texture")
ENVIRONMENT: dict[str, Any] = {"device": "cpu", "commit": None, "versions": {}}

MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Makes a run on the same images every time; `seed` decides the members' logits."""

    def make(
        folder_name: str = "run", *, members: int = 2, seed: int = 0, cell_images: int = CELL_IMAGES, **changes: Any
    ) -> Run:
        on_all = replace(find_experiment("digits/quickstart"), train_on="all", init_std=0.5)
        experiment = replace(on_all, num_members=members, policy=MemberPolicy(), **changes)
        folder = tmp_path_factory.mktemp("runs") / folder_name
        record = {"schema": 1, "experiment": to_dict(experiment), "seed": seed, "command": "counterpoint train"}
        write_json(folder / "run.json", record | {"started": "then", "environment": ENVIRONMENT})
        (folder / "log.jsonl").write_text(json.dumps({"event": "epoch", "time": "now", "seconds": 1.0}) + "\n")
        write_logits(folder / "logits", experiment.train_on == "split", members, seed, cell_images)
        return load_run(folder)

    return make


def write_logits(folder: Path, on_split: bool, members: int, seed: int, cell_images: int) -> None:
    """Leave what an evaluation of the paper's suite leaves."""
    rng = np.random.default_rng(seed)
    labels_N = np.arange(IMAGES) % CLASSES
    about = {
        "step": 9,
        "weights": f"weights of seed {seed}",
        "precision": "fp32",
        "clean": encode(Images("digits", "validation" if on_split else "test", IMAGES)),
        "corrupted": encode(shift_of(CORRUPTED, cell_images)),
    }
    write_json(folder / "about.json", about)
    write_array(folder / "labels.npy", labels_N)
    write_array(folder / "clean.npy", made_logits(rng, labels_N, members, 2.0).astype(np.float32))
    write_suite(folder, CORRUPTED, labels_N[:cell_images], members, rng)
    layers = {f"layer{i}.{kind}": rng.normal(1, 0.5, (members, 40)) for i in range(2) for kind in "rs"}
    write_arrays(folder / "factors.npz", layers if members > 1 else {})


def write_suite(folder: Path, suite: Suite, labels_N: np.ndarray, members: int, rng: np.random.Generator) -> None:
    write_array(folder / f"{labels_file(suite.name)}.npy", labels_N)
    for name, severity in suite.cells:
        logits_MNK = made_logits(rng, labels_N, members, 2 - 0.3 * severity).astype(np.float16)
        write_array(folder / f"{cell_file(suite.name, name, severity)}.npy", logits_MNK)


def add_suite(run: Run, name: str, cell_images: int = 20) -> None:
    """Leave what an evaluation of another suite adds to the logits."""
    folder, suite = run.folder / "logits", SUITES[name]
    about = read_json(folder / "about.json") | {name: encode(shift_of(suite, cell_images))}
    write_json(folder / "about.json", about)
    write_suite(folder, suite, np.arange(cell_images) % CLASSES, run.experiment.members, np.random.default_rng(99))


def keep_cells(run: Run, name: str, corruptions: Sequence[str], severities: Sequence[int]) -> None:
    """Let a suite have these cells alone, which is quicker. To be called before the run is evaluated."""
    before = read_json(run.folder / "logits" / "about.json")[name]
    set_about(run, **{name: before | {"corruptions": list(corruptions), "severities": list(severities)}})


def shift_of(suite: Suite, images: int) -> Shift:
    return Shift(SOURCE, images, suite.part, suite.corruptions, suite.severities)


def made_logits(rng: np.random.Generator, labels_N: np.ndarray, members: int, strength: float) -> np.ndarray:
    """(M, N, K): members that share half of their noise, and see the right class as strongly as asked."""
    right_NK = strength * np.eye(CLASSES)[labels_N]
    return (right_NK + rng.normal(size=right_NK.shape) + rng.normal(size=(members, *right_NK.shape))) * 2


def saved(run: Run, name: str) -> np.ndarray:
    """A file of the run's logits, or of their labels."""
    array: np.ndarray = np.load(run.folder / "logits" / f"{name}.npy")
    return array


def set_about(run: Run, **changes: Any) -> None:
    """Let the logits be those of something else."""
    path = run.folder / "logits" / "about.json"
    write_json(path, read_json(path) | changes)


def copied(run: Run, folder: Path) -> Run:
    """A copy of the run that a test may change."""
    shutil.copytree(run.folder, folder)
    return load_run(folder)


def retrain(run: Run) -> None:
    """Give a finished run other weights."""
    checkpoint = latest_checkpoint(run.folder)
    assert checkpoint is not None
    tensors = {name: tensor * 1.5 if name.endswith(".s") else tensor for name, tensor in checkpoint.tensors.items()}
    save_checkpoint(run.folder, Checkpoint(tensors, checkpoint.step, checkpoint.seconds))


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file of a run, by its path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def evaluated(run: Run) -> Results:
    """The run's results.json, computed from its logits and written."""
    return write_results(run, environment=ENVIRONMENT, started=time.monotonic())
