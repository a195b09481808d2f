"""The scores of an ensemble and its members on one set of images."""

from dataclasses import fields

import numpy as np
import pytest
import torch

from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores, disagreement, image_scores, mean_pairwise_kl, score_set


def some_probs(members: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(5, 0.4), size=(members, 80)), rng.integers(5, size=80)


def same(found: ImageScores, expected: ImageScores) -> bool:
    return all(
        np.allclose(getattr(found, field.name), getattr(expected, field.name), rtol=1e-6)
        for field in fields(ImageScores)
    )


def test_the_ensemble_is_the_mean_of_the_members() -> None:
    probs_MNK, labels_N = some_probs(members=3)
    scores = score_set(probs_MNK, labels_N)
    assert same(scores.ensemble, image_scores(sum(probs_MNK) / 3, labels_N))
    assert len(scores.members) == 3
    for found, probs_NK in zip(scores.members, probs_MNK, strict=True):
        assert same(found, image_scores(probs_NK, labels_N))
    assert scores.disagreement == disagreement(probs_MNK)
    assert scores.pairwise_kl == mean_pairwise_kl(probs_MNK)


def test_one_network_has_nobody_to_differ_from() -> None:
    scores = score_set(*some_probs(members=1))
    assert same(scores.ensemble, scores.members[0])
    assert scores.disagreement is None
    assert scores.pairwise_kl is None


def test_tensors_are_taken_too() -> None:
    probs_MNK, labels_N = some_probs(members=2)
    scores = score_set(torch.from_numpy(probs_MNK).float(), torch.from_numpy(labels_N))
    assert scores.ensemble.confidence.dtype == np.float64
    assert same(scores.ensemble, score_set(probs_MNK, labels_N).ensemble)


def test_labels_and_shape_are_checked() -> None:
    probs_MNK, labels_N = some_probs(members=2)
    with pytest.raises(InputError, match="3 axes"):
        score_set(probs_MNK[0], labels_N)
    with pytest.raises(InputError, match=r"must be \(80,\)"):
        score_set(probs_MNK, labels_N[:-1])
