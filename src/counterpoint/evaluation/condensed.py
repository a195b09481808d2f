"""Condensed scores: what a paired comparison needs of one run's scores.npz, in a fiftieth of its size or less.

`counterpoint reproduce` keeps them beside a row's result, so that rows trained on different machines can be compared
image by image when the runs are gone. Clean images keep their confidence as in scores.npz. Of the cells there are, for
each image, its mean error, NLL and Brier score over all cells and its influence on each calibration error.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, get_args

import numpy as np

from counterpoint.errors import InputError
from counterpoint.evaluation.scores import RunScores
from counterpoint.metrics import ImageScores
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.over_cells import means_of_images
from counterpoint.metrics.paired_calibration import CalibrationPart, calibration_parts
from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.figures import CalibrationError, WithInterval
from counterpoint.records.images import MadeFrom, Shift
from counterpoint.storage.arrays import read_arrays, write_arrays

_ABOUT, _VERSION = "about", 1
_STEP = 1e-4  # of an NLL or a Brier score
_INFLUENCE_STEP = 1 / 128  # of a standard deviation
_KINDS = (np.uint8, np.int16, np.uint16, np.int32)


@dataclass(frozen=True, eq=False)
class CondensedCells:
    """Of all cells together: each image's mean error, NLL and Brier score, and its influence on calibration errors."""

    means: Mapping[str, Floats]
    calibration: Mapping[str, CalibrationPart]


@dataclass(frozen=True, eq=False)
class CondensedScores:
    """The clean images' scores, and of the cells what a comparison needs."""

    made_from: MadeFrom
    clean: ImageScores
    cells: CondensedCells | None
    shifts: ClassVar[Mapping[str, tuple[Shift, Sequence[ImageScores]]]] = {}
    outside: ClassVar[None] = None
    """Of other images nothing is kept."""


@dataclass(frozen=True)
class _About:
    """What the file says beside its arrays."""

    version: int
    made_from: MadeFrom
    calibration: Mapping[CalibrationError, WithInterval] | None = None

    def problem(self) -> str:
        if self.version != _VERSION:
            return f"version is {self.version}, and this counterpoint reads {_VERSION}"
        if (self.calibration is None) != (self.made_from.corrupted is None):
            return "calibration is there without cells, or is missing"
        if self.made_from.corrupted and not self.made_from.corrupted.named_cells:
            return "made_from.corrupted has no cells"
        wrong = [name for name, one in (self.calibration or {}).items() if not one.low <= one.value <= one.high]
        return f"calibration.{wrong[0]} is not inside its interval" if wrong else ""


def condensed_file(result: Path) -> Path:
    """Where the condensed scores of a row's result are: results/…/paper-0.npz beside paper-0.json."""
    return result.with_suffix(".npz")


def condense(scores: RunScores) -> CondensedScores:
    """A run's condensed scores, not yet rounded."""
    cells = [cell for severities in scores.cells.values() for cell in severities]
    condensed = CondensedCells(means_of_images(cells), calibration_parts(scores.cells)) if cells else None
    return CondensedScores(scores.made_from, scores.clean, condensed)


def write_condensed(path: Path, scores: CondensedScores) -> None:
    """Write the file, about 150 kB for CIFAR.

    Errors are kept exactly. Rounding moves the mean NLL or Brier score of N images by less than 1e-4 / N, and the
    correlation of two influences by about 3e-3 / √N.
    """
    clean, cells = scores.clean, scores.cells
    arrays = {
        "clean/confidence": clean.confidence.astype(np.float32),
        "clean/correct": clean.correct,
        "clean/nll": _in_steps(clean.nll),
        "clean/brier": _in_steps(clean.brier),
    }
    calibration = None
    if cells and (shift := scores.made_from.corrupted):
        calibration = {}
        arrays["cells/wrong"] = _small(cells.means["error"] * len(shift.named_cells))
        arrays |= {f"cells/{name}": _in_steps(cells.means[name]) for name in ("nll", "brier")}
        for name in get_args(CalibrationError):
            part = cells.calibration[f"{name}_debiased"]
            calibration[name] = WithInterval(part.value, part.low, part.high)
            arrays[f"cells/{name}"] = _small(part.influence_N / _INFLUENCE_STEP)
    about = encode(_About(_VERSION, scores.made_from, calibration))
    write_arrays(path, arrays | {_ABOUT: np.array(json.dumps(about, allow_nan=False))})


def read_condensed(path: Path) -> CondensedScores:
    """What `write_condensed` wrote, and InputError for anything else."""
    remedy = "restore it from a copy, or give the run's folder"
    arrays = read_arrays(path, remedy)

    def numbers(name: str, images: int, kinds: str = "iu") -> np.ndarray:
        values = arrays[name]
        if values.shape != (images,) or values.dtype.kind not in kinds:
            raise ValueError(f"{name} is {values.dtype} {values.shape}, and there are {images} images")
        return values

    def not_below_0(name: str, images: int) -> Floats:
        values = numbers(name, images)
        if values.min(initial=0) < 0:
            raise ValueError(f"{name} has a number below 0")
        return values.astype(np.float64)

    try:
        about = decode(_About, json.loads(str(arrays[_ABOUT])))
        images = about.made_from.clean.images
        confidence = numbers("clean/confidence", images, "f").astype(np.float64)
        if not ((confidence >= 0) & (confidence <= 1)).all():
            raise ValueError("clean/confidence has a number that is not from 0 to 1")
        nll, brier = (_STEP * not_below_0(f"clean/{name}", images) for name in ("nll", "brier"))
        clean = ImageScores(confidence, numbers("clean/correct", images, "b"), nll, brier)
        shift, cells = about.made_from.corrupted, None
        if shift and about.calibration:
            means = {"error": not_below_0("cells/wrong", shift.images) / len(shift.named_cells)}
            if means["error"].max(initial=0) > 1:
                raise ValueError("cells/wrong has more mistakes than there are cells")
            means |= {name: _STEP * not_below_0(f"cells/{name}", shift.images) for name in ("nll", "brier")}
            parts = {
                f"{name}_debiased": CalibrationPart(
                    one.value, one.low, one.high, _INFLUENCE_STEP * numbers(f"cells/{name}", shift.images)
                )
                for name, one in about.calibration.items()
            }
            cells = CondensedCells(means, parts)
        return CondensedScores(about.made_from, clean, cells)
    except (KeyError, ValueError, FieldError, AttributeError, RecursionError) as error:
        raise InputError(f"{path} is damaged or is no file of condensed scores ({error}); {remedy}") from None


def _in_steps(values_N: Floats) -> np.ndarray:
    """Whole steps whose sums over the first images are those of the values, rounded. So a mean hardly changes."""
    return _small(np.diff(np.rint(np.cumsum(values_N) / _STEP), prepend=0.0))


def _small(values_N: Floats) -> np.ndarray:
    """Rounded to whole numbers, in the smallest type that has them all."""
    whole = np.rint(values_N)
    limits = ((kind, np.iinfo(kind)) for kind in _KINDS)
    fits = (kind for kind, limit in limits if limit.min <= whole.min(initial=0) and whole.max(initial=0) <= limit.max)
    return whole.astype(next(fits))
