"""AugMix's consistency loss beside the formula of its paper."""

import numpy as np
import pytest
import torch

from counterpoint.augment.consistency import jensen_shannon


def divergence(probs_VK: np.ndarray) -> float:
    mixture = probs_VK.mean(axis=0)
    return float(np.mean([np.sum(p * np.log(p / mixture)) for p in probs_VK]))


def test_the_divergence_is_that_of_the_augmix_paper() -> None:
    logits_VNK = torch.randn(3, 5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) * 3
    expected = [divergence(logits_VNK[:, n].softmax(dim=-1).numpy()) for n in range(5)]
    assert float(jensen_shannon(logits_VNK)) == pytest.approx(np.mean(expected), rel=1e-12)


def test_the_divergence_has_its_bounds() -> None:
    same = torch.randn(1, 5, 4).expand(3, 5, 4)
    assert float(jensen_shannon(same)) == pytest.approx(0, abs=1e-6)
    certain_of_different_classes = 1000 * torch.eye(3)[:, None, :]
    assert float(jensen_shannon(certain_of_different_classes)) == pytest.approx(np.log(3), rel=1e-6)
