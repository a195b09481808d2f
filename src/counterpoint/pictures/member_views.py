"""The views that members would be trained on, as a picture: rows are images, columns the members."""

import math
import unicodedata
from dataclasses import replace
from pathlib import Path

import torch

from counterpoint.config import Experiment
from counterpoint.data import DataSet, UserImages, parts_of
from counterpoint.errors import InputError
from counterpoint.pictures.sheet import Picture, draw_sheet
from counterpoint.training.batches import epoch_batches, steps_per_epoch, total_steps
from counterpoint.training.engines import make_forward
from counterpoint.training.network import build_described, describe
from counterpoint.training.step import perturbed_views


def draw_views(
    experiment: Experiment, data: DataSet | UserImages, path: Path, *, images: int = 8, seed: int = 0, epoch: int = 0
) -> None:
    """Draw each member's views of the first `images` images of an epoch, beside the images themselves.

    An adversarial perturbation is that of the initial weights, with these images as the batch.
    """
    parts = parts_of(data, experiment)
    count = len(parts.train)
    if not 1 <= images <= count:
        raise InputError(f"{images} images cannot be shown; give 1 to {count}, which are trained on")
    epochs = math.ceil(total_steps(experiment, count) / steps_per_epoch(experiment, count))
    if not 0 <= epoch < epochs:
        raise InputError(f"epoch is {epoch}; {experiment.name} is trained in the epochs 0 to {epochs - 1}")
    small = replace(experiment, batch_size=images)
    description = describe(small, parts)
    model = build_described(small, description, seed, restored=False, trusted_model=experiment.model).train()
    normalisation = description.normalisation
    batch = next(
        epoch_batches(
            parts.train, small, seed=seed, epoch=epoch, num_blocks=model.num_blocks, normalisation=normalisation
        )
    )
    forward = make_forward(model, images, "eager", torch.device("cpu"))
    unit_MBCHW = normalisation.undo(perturbed_views(model, batch, small, forward)).clamp(0, 1)
    views_MBHWC = (unit_MBCHW * 255).round().byte().permute(0, 1, 3, 4, 2).numpy()
    places_B = torch.searchsorted(parts.train.numbers_N, batch.numbers_B)
    originals_BHWC = next(parts.train.batches([places_B]))[1].permute(0, 2, 3, 1).numpy()

    def row(i: int) -> tuple[str, list[Picture]]:
        return f"{_drawable(parts.train.classes, int(batch.labels_B[i]))}, no. {int(batch.numbers_B[i])}", [
            originals_BHWC[i],
            *(views_BHWC[i] for views_BHWC in views_MBHWC),
        ]

    headings = ["image", *(f"member {m}" for m in range(1, experiment.members + 1))]
    draw_sheet([row(i) for i in range(images)], headings, path)


def _drawable(classes: tuple[str, ...], label: int) -> str:
    """The class's name without accents, or its number where that is not ASCII: the picture's font has little else."""
    letters = unicodedata.normalize("NFKD", classes[label].replace("_", " ").replace("ß", "ss"))
    name = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return name if name.isascii() else f"class {label + 1}"
