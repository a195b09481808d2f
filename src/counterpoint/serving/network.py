"""A run's network with corrected confidences: what `predict` says of images, and what an export must say of them."""

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.evaluation.members import Members, load_model, member_logits
from counterpoint.metrics.checks import Floats
from counterpoint.nn import Ensemble
from counterpoint.recalibration.apply import apply
from counterpoint.records.recalibrated import Recalibration
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run
from counterpoint.serving.correction import Correction


def load_corrected(
    run: Run, correction: Correction, device: torch.device, trusted_model: str | None = None
) -> Ensemble:
    """The network of a finished run, which must have the weights that the correction was fitted for."""
    model, _ = load_model(run, device, trusted_model)
    if correction.weights not in (None, fingerprint(model.state_dict())):
        raise InputError(
            f"{run.folder} was recalibrated with other weights than it has now; `counterpoint evaluate` and "
            "`counterpoint recalibrate` make it again"
        )
    return model


def corrected_probs(members: Members, recalibration: Recalibration, images_NCHW: Tensor) -> tuple[Floats, Floats]:
    """The ensemble's probabilities (N, K) of uint8 images, and the members' (M, N, K)."""
    logits_MNK = member_logits(members, images_NCHW).astype(np.float64)
    corrected = apply(recalibration, logits_MNK)
    # A temperature after averaging is not the members' own.
    members_MNK = softmax(logits_MNK, axis=2) if corrected.members_MNK is None else corrected.members_MNK
    return corrected.ensemble_NK, members_MNK
