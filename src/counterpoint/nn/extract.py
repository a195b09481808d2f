"""One member of an ensemble as a network of its own."""

import copy

from torch import nn

from counterpoint.nn.batch_ensemble import keep_one_member
from counterpoint.nn.deep import IndependentMembers
from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.members import MemberLayer, check_member
from counterpoint.nn.norm import PerMemberNorm, keep_one_norm


def extract_member(ensemble: Ensemble, index: int) -> nn.Module:
    """A copy of member `index` as a plain network. In a BatchEnsemble its weights are W ∘ r_i s_iᵀ.

    A layer that changes its weight before use stays what it is, with r_i and s_i around it.
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
