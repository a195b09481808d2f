"""Predictions as somebody else's program would give them."""

from pathlib import Path
from typing import Any

import numpy as np

CLASSES = 4
Arrays = dict[str, Any]


def made_logits(labels_N: np.ndarray, members: int = 1, strength: float = 2.0, seed: int = 0) -> np.ndarray:
    """(M, N, K): members that share half of their noise."""
    rng = np.random.default_rng([seed, members, len(labels_N), int(100 * strength)])
    right_NK = strength * np.eye(CLASSES)[labels_N]
    return right_NK + rng.normal(size=right_NK.shape) + rng.normal(size=(members, *right_NK.shape))


def made_labels(images: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, CLASSES, images)


def made_arrays(*, members: int = 2, images: int = 60, seed: int = 0, validation: bool = True) -> Arrays:
    """The clean images and the validation images. `seed` decides the members' logits, and not the images."""
    labels_N, others_N = made_labels(images), made_labels(images + 20, seed=1)
    arrays: Arrays = {"logits": made_logits(labels_N, members, seed=seed), "labels": labels_N}
    if validation:
        arrays |= {"validation_logits": made_logits(others_N, members, seed=seed), "validation_labels": others_N}
    return arrays


def shifted_arrays(*, members: int = 2, images: int = 60, seed: int = 0) -> Arrays:
    """The clean images under two shifts at two severities, and other images under one."""
    labels_N, others_N = made_labels(images), made_labels(30, seed=2)
    cells = {
        f"shift/{name}/{severity}/logits": made_logits(labels_N, members, 2 - 0.4 * severity, seed + place)
        for place, name in enumerate(("fog", "night shots"))
        for severity in (1, 3)
    }
    own = {"shift/Hospital-B/logits": made_logits(others_N, members, 1.0, seed), "shift/Hospital-B/labels": others_N}
    return cells | own


def softmax(logits: np.ndarray) -> np.ndarray:
    exponentials: np.ndarray = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def save(path: Path, arrays: Arrays) -> Path:
    np.savez(path, **arrays)
    return path
