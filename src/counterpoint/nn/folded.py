"""Members as plain networks for inference: r and s folded into the weights, BatchNorm into the convolutions."""

import copy

from torch import nn
from torch.nn.utils import fuse_conv_bn_eval

from counterpoint.nn.ensemble import Ensemble
from counterpoint.nn.extract import extract_member


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
