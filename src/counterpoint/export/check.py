"""Before a file is written, it is compared with PyTorch: the same images must give nearly the same probabilities."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from counterpoint.errors import InputError
from counterpoint.evaluation.members import fold_members
from counterpoint.export.formats import Exported
from counterpoint.nn import Ensemble
from counterpoint.runs.description import Description
from counterpoint.runs.folder import Run
from counterpoint.seeding import Stream
from counterpoint.serving.correction import Correction
from counterpoint.serving.network import corrected_probs
from counterpoint.training.run_images import data_name, parts_of_run

TOLERANCE = 1e-4
"""How far a probability may be from PyTorch's."""

_REAL, _NOISE = 16, 8


@dataclass(frozen=True)
class Agreement:
    """The largest difference of any probability, the ensemble's or a member's, and on which images."""

    difference: float
    words: str


def check_images(run: Run, root: Path | None) -> tuple[Tensor, str]:
    """Test images of the run's data set, if they are there, and some that are made: noise, black, white and ramps.

    They are uint8 (N, C, H, W). With them comes what they are, in words.
    """
    made_NCHW = _made_images(run.description)
    real_NCHW = _real_images(run, root)
    if real_NCHW is None:
        return made_NCHW, f"{len(made_NCHW)} made images, since those of {data_name(run)} are not at hand"
    words = f"{len(real_NCHW)} test images of {data_name(run)} and {len(made_NCHW)} made ones"
    return torch.cat([real_NCHW, made_NCHW]), words


def compare(exported: Exported, model: Ensemble, run: Run, correction: Correction, images_NCHW: Tensor) -> float:
    """How far the file is from what `counterpoint predict` says, on one image and on all others at once."""
    normalisation = run.description.normalisation
    members = fold_members(model, torch.device("cpu"), normalisation=normalisation, compiled=False)
    expected = corrected_probs(members, correction.recalibration, images_NCHW)
    images_NHWC = images_NCHW.permute(0, 2, 3, 1).contiguous().numpy()
    parts = [exported(images_NHWC[:1]), exported(images_NHWC[1:])]
    found = (np.concatenate(of_parts, axis=-2) for of_parts in zip(*parts, strict=True))
    return float(np.max([*map(_largest_difference, found, expected)]))  # unlike max, it keeps a NaN


def refuse_difference(agreement: Agreement, path: Path) -> None:
    """Raise if the file's probabilities differ from PyTorch's. A NaN counts as a difference."""
    if not agreement.difference <= TOLERANCE:
        raise InputError(
            f"{path} was not written: its probabilities would differ from PyTorch's by up to "
            f"{agreement.difference:.2g} on {agreement.words}, and {TOLERANCE:g} is allowed; try the other format "
            "(.onnx or .pt2), or other versions of its libraries"
        )


def _largest_difference(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.abs(found - expected).max()) if found.shape == expected.shape else float("inf")


def _real_images(run: Run, root: Path | None) -> Tensor | None:
    """None if the images are missing or have changed."""
    try:
        test = parts_of_run(run, root).test
    except (InputError, OSError):
        return None
    if test is None:
        return None
    images_NCHW = test[:_REAL]
    description = run.description
    size = (description.channels, description.height, description.width)
    return images_NCHW if tuple(images_NCHW.shape[1:]) == size else None


def _made_images(description: Description) -> Tensor:
    size = (description.channels, description.height, description.width)
    pixels = description.channels * description.height * description.width
    values = Stream(0, "export check").integers(torch.arange(_NOISE), pixels, 256)
    noise = values.view(_NOISE, *size).to(torch.uint8)
    across = torch.linspace(0, 255, description.width).to(torch.uint8).expand(size)
    down = torch.linspace(0, 255, description.height).to(torch.uint8)[:, None].expand(size)
    plain = [torch.full(size, value, dtype=torch.uint8) for value in (0, 255)]
    return torch.cat([noise, torch.stack([*plain, across, down])])
