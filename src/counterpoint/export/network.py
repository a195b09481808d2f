"""Everything from pixels to probabilities as one module, and its graph, which is what is exported."""

import copy

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.fx import GraphModule

from counterpoint.augment.standard import to_unit
from counterpoint.errors import InputError
from counterpoint.export.recalibrated import recalibrated_probs
from counterpoint.models.wanted import one_line
from counterpoint.nn import Ensemble
from counterpoint.nn.one_member import fold
from counterpoint.normalisation import Normalisation
from counterpoint.records.recalibrated import Recalibration


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
