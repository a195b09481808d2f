"""scores.npz: each image's confidence, correctness, NLL and Brier score, clean and in every cell.

With it two runs can be compared without a network and without logits. For CIFAR it has about 10 MB, so it can travel.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from counterpoint.corrupt import CORRUPTIONS, SEVERITIES
from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores
from counterpoint.storage.arrays import read_arrays, write_arrays

_FILE = "scores.npz"


@dataclass(frozen=True, eq=False)
class RunScores:
    """The ensemble's scores: on the clean set, and for each corruption at each severity."""

    clean: ImageScores
    cells: Mapping[str, Sequence[ImageScores]]


def write_scores(folder: Path, scores: RunScores) -> None:
    """Write scores.npz, with its numbers in float32."""
    sets = {"clean": scores.clean}
    for name, severities in scores.cells.items():
        sets |= {f"{name}-{severity}": cell for severity, cell in zip(SEVERITIES, severities, strict=True)}
    arrays = {
        f"{part}/{name}": values if values.dtype == bool else values.astype(np.float32)
        for part, of_images in sets.items()
        for name, values in asdict(of_images).items()
    }
    write_arrays(folder / _FILE, arrays)


def read_scores(folder: Path) -> RunScores:
    """What `write_scores` wrote."""
    remedy = f"`counterpoint evaluate {folder} --recompute` makes it again"
    arrays = read_arrays(folder / _FILE, remedy)

    def scores(part: str) -> ImageScores:
        confidence, nll, brier = (
            arrays[f"{part}/{name}"].astype(np.float64) for name in ("confidence", "nll", "brier")
        )
        return ImageScores(confidence, arrays[f"{part}/correct"].astype(bool), nll, brier)

    try:
        cells = {name: [scores(f"{name}-{severity}") for severity in SEVERITIES] for name in CORRUPTIONS}
        return RunScores(scores("clean"), cells)
    except (KeyError, ValueError) as error:
        raise InputError(f"{folder / _FILE} is not a whole scores file ({error}); {remedy}") from None
