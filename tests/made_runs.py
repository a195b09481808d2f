"""Runs with made-up logits: what follows from an evaluation can be tested without a network."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterpoint.config import to_dict
from counterpoint.evaluation.corrupted_set import CELLS
from counterpoint.evaluation.results import write_results
from counterpoint.experiments import find_experiment
from counterpoint.policy import MemberPolicy
from counterpoint.runs.folder import Run, load_run
from counterpoint.storage.arrays import write_arrays
from counterpoint.storage.files import write_json

CLASSES, IMAGES, CELL_IMAGES = 3, 80, 30
SOURCE = {"kind": "regenerated", "seed": 0, "version": "1", "frost": "texture"}
ENVIRONMENT: dict[str, Any] = {"device": "cpu", "commit": None, "versions": {}}

MakeRun = Callable[..., Run]


@pytest.fixture(scope="session")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> MakeRun:
    """Makes a run on the same images every time; `seed` decides the members' logits."""

    def make(
        folder_name: str = "run", *, members: int = 2, seed: int = 0, cell_images: int = CELL_IMAGES, **changes: Any
    ) -> Run:
        experiment = replace(
            find_experiment("digits/quickstart"), num_members=members, policy=MemberPolicy(), **changes
        )
        folder = tmp_path_factory.mktemp("runs") / folder_name
        record = {"schema": 1, "experiment": to_dict(experiment), "seed": seed, "command": "counterpoint train"}
        write_json(folder / "run.json", record | {"started": "then", "environment": ENVIRONMENT})
        (folder / "log.jsonl").write_text(json.dumps({"event": "epoch", "time": "now", "seconds": 1.0}) + "\n")
        part = "validation" if experiment.train_on == "split" else "test"
        about = {
            "clean": {"dataset": "digits", "part": part, "images": IMAGES},
            "corrupted": {"source": SOURCE, "images": cell_images},
            "precision": "fp32",
        }
        write_json(folder / "logits" / "about.json", about)
        write_logits(folder / "logits", members, seed, cell_images)
        return load_run(folder)

    return make


def write_logits(folder: Path, members: int, seed: int, cell_images: int) -> None:
    rng = np.random.default_rng(seed)
    labels_N = np.arange(IMAGES) % CLASSES

    def logits(images: int, strength: float) -> np.ndarray:
        right_NK = strength * np.eye(CLASSES)[labels_N[:images]]
        return (right_NK + rng.normal(size=(images, CLASSES)) + rng.normal(size=(members, images, CLASSES))) * 2

    np.save(folder / "labels.npy", labels_N)
    np.save(folder / "cell-labels.npy", labels_N[:cell_images])
    np.save(folder / "clean.npy", logits(IMAGES, 2.0).astype(np.float32))
    for name, severity in CELLS:
        np.save(folder / f"{name}-{severity}.npy", logits(cell_images, 2 - 0.3 * severity).astype(np.float16))
    layers = {f"layer{i}.{kind}": rng.normal(1, 0.5, (members, 40)) for i in range(2) for kind in "rs"}
    write_arrays(folder / "factors.npz", layers if members > 1 else {})


@pytest.fixture(scope="session")
def evaluated() -> Callable[..., dict[str, Any]]:
    """Computes a run's results.json."""

    def evaluate(run: Run, **options: Any) -> dict[str, Any]:
        return write_results(run, environment=ENVIRONMENT, seconds=1.0, **options)

    return evaluate
