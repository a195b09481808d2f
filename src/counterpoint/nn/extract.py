"""One member of an ensemble as a network of its own."""

import copy

from torch import nn

from counterpoint.nn.batch_ensemble import keep_one_member
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.members import MemberLayer, check_member
from counterpoint.nn.norm import PerMemberNorm, keep_one_norm


def extract_member(ensemble: Ensemble, index: int) -> nn.Module:
    """Copy member `index` out of an ensemble, as a plain network. In a BatchEnsemble its weights are W ∘ r_i s_iᵀ.

    A layer that changes its weight before use keeps its own code, with r_i and s_i around it.

    >>> import torch
    >>> from counterpoint.nn import extract_member, resnet
    >>> ensemble = resnet(num_classes=10, num_members=2, width=4).eval()
    >>> member, images = extract_member(ensemble, 0), torch.randn(1, 3, 32, 32)
    >>> alone, inside = member(images).softmax(1), ensemble.predict_members(images)[0]
    >>> torch.allclose(alone, inside, atol=1e-5)
    True
    """
    check_member(index, ensemble.num_members)
    if isinstance(ensemble.network, IndependentMembers):
        return copy.deepcopy(ensemble.network.members[index])
    network = copy.deepcopy(ensemble.network)
    for module in network.modules():
        if isinstance(module, MemberLayer):
            keep_one_member(module, index)
        elif isinstance(module, PerMemberNorm):
            keep_one_norm(module, index)
    return network
