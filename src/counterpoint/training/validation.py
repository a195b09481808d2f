"""The ensemble's figures on the validation images after an epoch. Training does not depend on them."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from counterpoint.augment.standard import to_unit
from counterpoint.data import LabelledImages
from counterpoint.devices import at_once
from counterpoint.errors import InputError
from counterpoint.metrics import ece, image_scores
from counterpoint.nn import Ensemble
from counterpoint.normalisation import Normalisation
from counterpoint.records.codec import FieldError, decode
from counterpoint.watching import ValidationFigures

_VIEWS_AT_ONCE = {"cuda": 2048, "cpu": 256}


def validate(
    model: Ensemble, images: LabelledImages, normalisation: Normalisation, device: torch.device
) -> ValidationFigures:
    """The figures of the images as they are, in the network's evaluation mode; it is then left in the mode it was in.

    On a GPU it computes in bf16, as in training.
    """
    on_gpu, probs = device.type == "cuda", []
    places = torch.arange(len(images), device=images.labels_N.device)
    views = _VIEWS_AT_ONCE[device.type] if on_gpu else at_once(_VIEWS_AT_ONCE["cpu"], *images.image_shape[1:])
    for _, images_BCHW in images.batches(places.split(max(1, views // model.num_members)), pinned=on_gpu):
        inputs_BCHW = normalisation.apply(to_unit(images_BCHW.to(device, non_blocking=True)))
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=on_gpu):
            probs.append(model.predict_members(inputs_BCHW).double().mean(dim=0))
    probs_NK = torch.cat(probs)
    scores = image_scores((probs_NK / probs_NK.sum(dim=1, keepdim=True)).cpu().numpy(), images.labels_N.cpu().numpy())
    return ValidationFigures(
        error=float((~scores.correct).mean()),
        nll=float(scores.nll.mean()),
        ece=ece(scores.confidence, scores.correct),
    )


def logged_validation(log: Sequence[Mapping[str, Any]]) -> ValidationFigures | None:
    """The figures of the last epoch in the log; None where that was not validated."""
    epochs = [record for record in log if record["event"] == "epoch"]
    if not epochs or "validation" not in epochs[-1]:
        return None
    try:
        return decode(ValidationFigures, epochs[-1]["validation"])
    except FieldError as wrong:
        raise InputError(
            f"the entry validation in log.jsonl is damaged or incomplete: {wrong}; restore the file from a copy"
        ) from None
