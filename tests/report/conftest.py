from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from counterpoint.metrics import summarise


def _results(name: str = "quickstart", members: int = 4, seed: int = 0) -> dict[str, Any]:
    """What `counterpoint evaluate` writes, for made-up probabilities of 120 images and 5 classes."""
    rng = np.random.default_rng([seed, members])
    labels = rng.integers(5, size=120)
    logits = rng.normal(size=(members, 120, 5)) + 3 * np.eye(5)[labels]
    probs = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    return {
        "schema": 1,
        "counterpoint": "0.1.0",
        "experiment": name,
        "config": {"dataset": "digits", "num_members": members if members > 1 else None, "epochs": 17},
        "run": {
            "seed": seed,
            "command": f"counterpoint train {name} --out runs/{name}",
            "commit": None,
            "device": "cpu",
            "versions": {"python": "3.11.2", "torch": "2.13.0+cpu"},
            "train_seconds": 3725.0,
            "finished": "2026-11-15T10:00:00Z",
        },
        "evaluation": {
            "command": f"counterpoint evaluate runs/{name}",
            "finished": "2026-11-15T11:30:00Z",
            "precision": "float32",
            "seconds": 1.234,
        },
        "evaluated_on": {"dataset": "digits", "part": "test", "images": 120},
        "clean": summarise(probs, labels),
    }


@pytest.fixture
def make_results() -> Callable[..., dict[str, Any]]:
    return _results
