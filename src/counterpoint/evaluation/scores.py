"""scores.npz: each image's confidence, correctness, NLL and Brier score, clean and in each cell of test images, and
which images belong together, if some do.

With it two runs can be compared without a network and without logits. For CIFAR it has about 10 MB, so it can travel.
It says which logits it was made from.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from counterpoint.errors import InputError
from counterpoint.metrics import ImageScores
from counterpoint.metrics.checks import Floats
from counterpoint.metrics.scores import Grid
from counterpoint.records.codec import FieldError, decode, encode
from counterpoint.records.images import MadeFrom, OutsideImages, Shift
from counterpoint.storage.arrays import read_arrays, write_arrays
from counterpoint.storage.folders import quoted

_FILE = "scores.npz"
_MADE_FROM, _SHIFTS, _OUTSIDE = "made_from", "shifts", "outside"
_KNOWN = "known/confidence"
_CELLS = "corrupted"
_COLUMNS = ("confidence", "correct", "nll", "brier")


@dataclass(frozen=True, eq=False)
class RunScores:
    """The ensemble's scores: on the clean set, and for each corruption at each severity."""

    made_from: MadeFrom
    clean: ImageScores
    cells: Grid
    shifts: Mapping[str, tuple[Shift, Sequence[ImageScores]]] = field(default_factory=dict)
    """Other sets of shifted test images, by name: what each is, and its scores at each severity."""
    outside: "OutsideScores | None" = None
    """None where there are no outside images."""


@dataclass(frozen=True, eq=False)
class OutsideScores:
    """The ensemble's confidence on outside images and on the clean ones, which are the known ones.

    In float64, because AUROCs are made of ranks: rounding would make ties of the highest confidences.
    """

    known_N: Floats
    sets: Mapping[str, tuple[OutsideImages, Floats]]
    """By name: which images they are, and the confidence on each."""


def write_scores(folder: Path, scores: RunScores) -> None:
    """Write scores.npz, with its numbers in float32."""
    sets = {"clean": scores.clean}
    if shift := scores.made_from.corrupted:
        for name, cells in scores.cells.items():
            sets |= {f"{name}-{severity}": cell for severity, cell in zip(shift.severities, cells, strict=True)}
    for name, (other, cells) in scores.shifts.items():
        sets |= {f"{name}/{severity}": cell for severity, cell in zip(other.severities, cells, strict=True)}
    arrays = {
        f"{part}/{name}": values if (values := getattr(of_images, name)).dtype == bool else values.astype(np.float32)
        for part, of_images in sets.items()
        for name in _COLUMNS
    }
    # A shift has the same images at each severity.
    first = {name: cells[0] for name, (_, cells) in scores.shifts.items()}
    if scores.cells:
        first[_CELLS] = next(iter(scores.cells.values()))[0]
    for name, of_images in ({"clean": scores.clean} | first).items():
        if of_images.groups is not None:
            arrays[f"{name}/group"] = of_images.group_N
    shifts = {name: encode(other) for name, (other, _) in scores.shifts.items()}
    about = {_MADE_FROM: encode(scores.made_from), _SHIFTS: shifts}
    if outside := scores.outside:
        about[_OUTSIDE] = {name: encode(images) for name, (images, _) in outside.sets.items()}
        arrays |= {_KNOWN: outside.known_N}
        arrays |= {f"{_OUTSIDE}/{name}/confidence": confidence_N for name, (_, confidence_N) in outside.sets.items()}
    write_arrays(folder / _FILE, arrays | {name: np.array(json.dumps(values)) for name, values in about.items()})


def read_scores(folder: Path) -> RunScores:
    """What `write_scores` wrote."""
    remedy = f"`counterpoint evaluate {quoted(folder)} --recompute` makes it again"
    arrays = read_arrays(folder / _FILE, remedy)

    def scores(part: str, together: str) -> ImageScores:
        confidence, nll, brier = (
            arrays[f"{part}/{name}"].astype(np.float64) for name in ("confidence", "nll", "brier")
        )
        correct = arrays[f"{part}/correct"].astype(bool)
        if {values.shape for values in (confidence, correct, nll, brier)} != {(correct.size,)}:
            raise ValueError(f"the scores of {part} are not of the same images")
        if not all(np.isfinite(values).all() for values in (confidence, nll, brier)):
            raise ValueError(f"the scores of {part} are not finite")
        group_N = arrays.get(f"{together}/group")
        if group_N is not None and (group_N.shape != correct.shape or group_N.dtype.kind not in "iu"):
            raise ValueError(f"{together}/group does not hold a whole number for each image")
        return ImageScores(confidence, correct, nll, brier, group_N)

    try:
        made_from = decode(MadeFrom, json.loads(str(arrays[_MADE_FROM])))
        shift = made_from.corrupted
        names, severities = (shift.corruptions, shift.severities) if shift else ((), ())
        cells = {name: [scores(f"{name}-{severity}", _CELLS) for severity in severities] for name in names}
        # Files of earlier versions have no other shifts.
        others = json.loads(str(arrays[_SHIFTS])) if _SHIFTS in arrays else {}
        shifts = {name: decode(Shift, values) for name, values in others.items()}
        of_shifts = {
            name: (other, [scores(f"{name}/{severity}", name) for severity in other.severities])
            for name, other in shifts.items()
        }
        clean = scores("clean", "clean")
        return RunScores(made_from, clean, cells, of_shifts, _read_outside(arrays, len(clean.correct)))
    except (KeyError, ValueError, FieldError, AttributeError, RecursionError) as error:
        raise InputError(f"{folder / _FILE} is damaged or is not a scores file ({error}); {remedy}") from None


def _read_outside(arrays: Mapping[str, np.ndarray], clean_images: int) -> OutsideScores | None:
    """Files of earlier versions have none."""
    if _OUTSIDE not in arrays:
        return None
    about = {name: decode(OutsideImages, values) for name, values in json.loads(str(arrays[_OUTSIDE])).items()}

    def confidence(key: str, images: int) -> Floats:
        values = arrays[key].astype(np.float64)
        if values.shape != (images,) or not np.isfinite(values).all():
            raise ValueError(f"{key} does not hold {images} finite numbers")
        return values

    sets = {name: (one, confidence(f"{_OUTSIDE}/{name}/confidence", one.images)) for name, one in about.items()}
    return OutsideScores(confidence(_KNOWN, clean_images), sets)
