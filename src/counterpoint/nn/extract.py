"""Members as plain networks: one of them, or all for inference, with BatchNorm folded into the convolutions."""

import copy

from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

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


def fold(ensemble: Ensemble) -> nn.ModuleList:
    """Every member as a plain network in evaluation mode, the same function of an image as before.

    BatchNorm is folded into the convolution right before it in an nn.Sequential, where counterpoint's networks have
    both. Elsewhere it stays, because only a Sequential tells in which order layers are called.
    """
    members = nn.ModuleList(extract_member(ensemble, i) for i in range(ensemble.num_members))
    members.eval().requires_grad_(False)
    for module in members.modules():
        if type(module) is nn.Sequential:  # a subclass may call its layers in another order
            _fold_batchnorm(module)
    return members


def _fold_batchnorm(layers: nn.Sequential) -> None:
    for i in range(len(layers) - 1):
        conv, norm = layers[i], layers[i + 1]
        if type(conv) is nn.Conv2d and type(norm) is nn.BatchNorm2d and norm.running_mean is not None:
            layers[i], layers[i + 1] = _fused(conv, norm), nn.Identity().eval()


def _fused(conv: nn.Conv2d, norm: nn.BatchNorm2d) -> nn.Conv2d:
    """Both as one convolution, computed in fp64 so that its weights are rounded once.

    The layers given stay as they are, since they may be used elsewhere too.
    """
    exact_conv, exact_norm = copy.deepcopy(conv).double(), copy.deepcopy(norm).double()
    return fuse_conv_bn_eval(exact_conv, exact_norm).to(conv.weight.dtype)
