import pytest
import torch
from torch import nn

from counterpoint.errors import InputError
from counterpoint.nn import Ensemble, resnet
from counterpoint.nn.norm import left_untouched


def test_prediction_is_the_mean_of_the_members_probabilities() -> None:
    ensemble = resnet(5, 3, width=4)
    assert isinstance(ensemble, Ensemble)
    images = torch.randn(4, 3, 16, 16)
    ensemble.train()
    probs_MBK = ensemble.predict_members(images)
    assert ensemble.training
    with torch.no_grad():
        logits = ensemble.eval()(torch.stack([images] * 3))
    torch.testing.assert_close(probs_MBK, logits.softmax(-1))
    torch.testing.assert_close(ensemble.predict(images), (probs_MBK[0] + probs_MBK[1] + probs_MBK[2]) / 3)


def test_without_a_mask_nothing_is_dropped() -> None:
    ensemble = resnet(5, 2, width=4).train()
    assert isinstance(ensemble, Ensemble)
    views = torch.randn(2, 8, 3, 16, 16)
    with left_untouched(ensemble):
        assert torch.equal(ensemble(views), ensemble(views, torch.ones(ensemble.num_blocks, 16)))
        assert not torch.equal(ensemble(views), ensemble(views, torch.zeros(ensemble.num_blocks, 16)))


def test_a_network_without_branches_takes_no_mask() -> None:
    with pytest.raises(InputError, match="Flatten has no residual branches that counterpoint can drop"):
        Ensemble(nn.Flatten(), 1)(torch.randn(1, 2, 3, 4, 4), keep=torch.ones(1, 2))
