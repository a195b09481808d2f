"""Everything from pixels to probabilities as one module, which is what is exported."""

import copy

import torch
from torch import Tensor, nn

from counterpoint.augment.standard import to_unit
from counterpoint.export.recalibrated import recalibrated_probs
from counterpoint.nn import Ensemble
from counterpoint.nn.folded import fold
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
