from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any

import numpy as np
import pytest

from counterpoint.corrupt import CORRUPTIONS
from counterpoint.metrics import aggregate, image_scores, summarise


def _probabilities(labels: np.ndarray, members: int, signal: float, seed: list[int]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(members, len(labels), 5)) + signal * np.eye(5)[labels]
    return np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)


@cache
def _corrupted(members: int, seed: int) -> dict[str, Any]:
    """The section of 75 cells, 40 images each, whose signal fades with the severity."""
    labels = np.random.default_rng(seed).integers(5, size=40)
    grid = {
        name: [_probabilities(labels, members, 3 - 0.5 * severity, [seed, i, severity]) for severity in range(1, 6)]
        for i, name in enumerate(CORRUPTIONS)
    }

    def scores(pick: Callable[[np.ndarray], np.ndarray]) -> dict[str, dict[str, float]]:
        return aggregate({name: [image_scores(pick(probs), labels) for probs in row] for name, row in grid.items()})

    return {
        "source": {"kind": "regenerated", "seed": 0, "version": "0.1.0", "frost": "texture"},
        "images": len(labels),
        "aggregates": {
            "ensemble": scores(lambda probs_MNK: probs_MNK.mean(axis=0)),
            "members": [scores(lambda probs_MNK, i=i: probs_MNK[i]) for i in range(members)],  # type: ignore[misc]
        },
        "cells": {name: [summarise(probs, labels) for probs in row] for name, row in grid.items()},
    }


def _results(name: str = "quickstart", members: int = 4, seed: int = 0, shifted: bool = False) -> dict[str, Any]:
    """What `counterpoint evaluate` writes, for made-up probabilities of 120 images and 5 classes.

    `shifted` adds the corrupted section.
    """
    labels = np.random.default_rng(seed).integers(5, size=120)
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
        "clean": summarise(_probabilities(labels, members, 3, [seed, members]), labels),
        **({"corrupted": deepcopy(_corrupted(members, seed))} if shifted else {}),
    }


@pytest.fixture
def make_results() -> Callable[..., dict[str, Any]]:
    return _results
