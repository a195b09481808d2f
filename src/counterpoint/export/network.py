"""Everything from pixels to probabilities as one module, and its graph, which is what is exported."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule

from counterpoint.augment.standard import to_unit
from counterpoint.errors import InputError
from counterpoint.models.wanted import one_line
from counterpoint.nn import Ensemble
from counterpoint.nn.one_member import fold
from counterpoint.normalisation import Normalisation
from counterpoint.records.recalibrated import Recalibration, Signal

# Its exp is a normal float32, and so is the exp of its negative. A log temperature beyond it makes no difference any
# more: all classes are equally likely, or one has all the probability.
_MOST = 80.0
_TINY = torch.finfo(torch.float32).tiny


class WholeNetwork(nn.Module):
    """From uint8 images to probabilities: normalisation, the members as plain networks, recalibration, the mean."""

    def __init__(self, members: nn.ModuleList, normalisation: Normalisation, recalibration: Recalibration) -> None:
        super().__init__()
        self.members = members
        self.normalisation = normalisation
        self.recalibration = recalibration

    def forward(self, images_NHWC: Tensor) -> tuple[Tensor, Tensor]:
        """The ensemble's probabilities (N, K), and each member's (M, N, K)."""
        seen_NCHW = self.normalisation.apply(to_unit(images_NHWC.permute(0, 3, 1, 2).contiguous()))
        logits_MNK = torch.stack([member(seen_NCHW) for member in self.members])
        return recalibrated_probs(self.recalibration, logits_MNK)


def whole_network(model: Ensemble, normalisation: Normalisation, recalibration: Recalibration) -> WholeNetwork:
    """The model with r, s and BatchNorm folded into the members' weights, in fp64 and rounded once."""
    exact = copy.deepcopy(model).double()
    return WholeNetwork(fold(exact).float(), normalisation, recalibration).eval()


def trace(network: WholeNetwork, images_NHWC: Tensor, called: str) -> ExportedProgram:
    """The network's graph, found by running it on these images, of which there must be two or more.

    `called` is what an error calls the network. The graph does not say in which files the code lies.
    """
    try:
        program = torch.export.export(network, (images_NHWC,), dynamic_shapes=({0: Dim("N")},))
    except Exception as error:  # a stranger's network can raise anything
        raise InputError(
            f"{called} cannot be exported: torch.export finds no graph of it for batches of any size "
            f"({one_line(error)}); what it computes must not depend on pixels, nor on how many images there are"
        ) from error
    _forget_origin(program)
    return program


def _forget_origin(program: ExportedProgram) -> None:
    """Drop the lines of code that each operation comes from: they name folders of this machine."""
    for module in program.graph_module.modules():
        if isinstance(module, GraphModule):
            for node in module.graph.nodes:
                node.meta.pop("stack_trace", None)


def recalibrated_probs(recalibration: Recalibration, logits_MNK: Tensor) -> tuple[Tensor, Tensor]:
    """The ensemble's probabilities (N, K) and the members' (M, N, K), as `counterpoint predict` has them.

    These are operations of torch, so that they are part of what is exported. `recalibration.apply` is the same in
    float64 with NumPy, and what this is checked against.
    """
    after = recalibration.acts == "after"
    scaled_TNK = _log_mean(logits_MNK)[None] if after else logits_MNK
    probs_TNK = _softened(scaled_TNK, _log_temperatures(recalibration, logits_MNK))
    # A temperature after averaging is not the members' own.
    return probs_TNK.mean(dim=0), logits_MNK.softmax(dim=2) if after else probs_TNK


def _log_temperatures(recalibration: Recalibration, logits_MNK: Tensor) -> Tensor:
    """One temperature per member or one for all, and one per image if it depends on the image: (M or 1, N or 1)."""
    values = [parameter.value for parameter in recalibration.log_temperatures]
    log_TN = torch.stack([logits_MNK.new_full((1,), value) for value in values])
    for one in recalibration.slopes:
        log_TN = log_TN + one.slope.value * _signal(one.signal, logits_MNK)
    return log_TN.clamp(-_MOST, _MOST)


def _softened(logits_TNK: Tensor, log_temperatures_TN: Tensor) -> Tensor:
    """The highest logit becomes 0 first, which stays 0 for any temperature: nothing overflows."""
    below_TNK = logits_TNK - logits_TNK.amax(dim=2, keepdim=True)
    return (below_TNK * torch.exp(-log_temperatures_TN)[:, :, None]).softmax(dim=2)


def _log_mean(logits_MNK: Tensor) -> Tensor:
    """The log of the members' mean probability (N, K)."""
    log_probs_MNK = logits_MNK.log_softmax(dim=2)
    highest_NK = log_probs_MNK.amax(dim=0)
    return highest_NK + (log_probs_MNK - highest_NK).exp().mean(dim=0).log()


def _signal(name: Signal, logits_MNK: Tensor) -> Tensor:
    """`recalibration.apply` says what the signals (N) are."""
    log_probs_MNK = logits_MNK.log_softmax(dim=2)
    probs_MNK = log_probs_MNK.exp()
    most = math.log(logits_MNK.shape[2])
    entropy_N = -(probs_MNK * log_probs_MNK).sum(dim=2).mean(dim=0) / most
    if name == "entropy":
        return entropy_N.clamp(max=1.0)
    mean_NK = probs_MNK.mean(dim=0)
    of_mean_N = -(mean_NK * mean_NK.clamp(min=_TINY).log()).sum(dim=1) / most
    return (of_mean_N - entropy_N).clamp(min=0.0)
