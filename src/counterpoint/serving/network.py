"""A run's network with corrected confidences: what `predict` says of images, and what an export must say of them."""

from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from counterpoint.devices import choose_device
from counterpoint.errors import InputError
from counterpoint.evaluation.members import Members, load_model, member_logits
from counterpoint.metrics.checks import Floats
from counterpoint.nn import Ensemble
from counterpoint.recalibration.apply import apply
from counterpoint.records.recalibrated import Recalibration
from counterpoint.runs.checkpoints import fingerprint
from counterpoint.runs.folder import Run, load_run
from counterpoint.serving.correction import Correction


def load_ensemble(folder: Run | Path | str, *, device: str = "auto", trusted_model: str | None = None) -> Ensemble:
    """The trained network of a finished run, or of the one in a folder, in evaluation mode.

    A single network is an ensemble of one member. It takes images normalised as in training;
    `load_run(folder).description.normalisation` does that for pixels in [0, 1]. No recalibration is applied:
    `load_predictor` does both. If the run's network is a function of your own, name it as
    `trusted_model="mymodule:make_model"`.

    >>> from pathlib import Path
    >>> import torch
    >>> from counterpoint import Experiment, load_ensemble
    >>> from counterpoint.data import load
    >>> from counterpoint.runs.folder import load_run
    >>> from counterpoint.training.loop import Options, train
    >>> experiment = Experiment("mine", "digits", model="resnet", width=2, num_members=2, steps=2, batch_size=8)
    >>> _ = train(experiment, Path("runs/mine"), load("digits"), options=Options(device="cpu"))
    >>> ensemble = load_ensemble("runs/mine", device="cpu")
    >>> normalise = load_run("runs/mine").description.normalisation.apply
    >>> ensemble.predict_members(normalise(torch.rand(5, 1, 32, 32))).shape  # members, images, classes
    torch.Size([2, 5, 10])
    """
    model, _ = load_model(load_run(folder), choose_device(device), trusted_model)
    return model


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
