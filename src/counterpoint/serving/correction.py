"""How a run's confidences are corrected before they are shown, and below which confidence a prediction is not sure."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from counterpoint.errors import InputError
from counterpoint.recalibration.choose import NONE
from counterpoint.records.files import RECALIBRATED, RESULTS, Beside, read_current, read_results
from counterpoint.records.files import THRESHOLD as THRESHOLD_FILE
from counterpoint.records.recalibrated import Recalibrated, Recalibration
from counterpoint.records.threshold import Thresholded
from counterpoint.setting_types import parse_fraction
from counterpoint.storage.folders import quoted

THRESHOLD = "threshold"
"""The word for the threshold that `counterpoint threshold` found."""


@dataclass(frozen=True)
class Correction:
    """A recalibration, what it is called, and from which confidence on a prediction is sure; None if nobody asks."""

    recalibration: Recalibration
    name: str
    sure_from: float | None = None
    weights: str | None = None
    """A hash of the weights that it was fitted for; None where nothing was fitted."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """Why a record that the run has was not taken: somebody recalibrated it, and may count on that."""


def find_correction(folder: Path, not_sure_below: str | float | None = None) -> Correction:
    """The correction that is best on the run's validation images.

    It is the recalibration that `recalibrate --choose` took, or else the one with the least NLL on validation images.
    That may be none, and is none for a run that was not recalibrated. A threshold brings the recalibration that it was
    found with, since its promise is for those confidences alone.
    """
    if not_sure_below == THRESHOLD:
        found, _ = _current(folder / THRESHOLD_FILE, Thresholded)
        if found is None:
            raise InputError(
                f"{folder} has no threshold for its present figures; `counterpoint threshold "
                f"{quoted(folder)} --error 1%` finds one, or give a confidence, such as 0.9"
            )
        return _of_threshold(found)
    sure_from = None if not_sure_below is None else parse_confidence(str(not_sure_below))
    recalibrated, notes = _current(folder / RECALIBRATED, Recalibrated)
    if recalibrated is None:
        return Correction(NONE, "none", sure_from, notes=notes)
    way = recalibrated.ways.get(recalibrated.best)
    recalibration = NONE if way is None else way.recalibration
    return Correction(recalibration, recalibrated.best, sure_from, recalibrated.made_from.weights)


def find_promised(folder: Path) -> Correction:
    """The correction of the run's threshold if it has a valid one, or else the one that is best on its validation
    images.
    """
    threshold, notes = _current(folder / THRESHOLD_FILE, Thresholded)
    if threshold is not None:
        return _of_threshold(threshold)
    found = find_correction(folder)
    return replace(found, notes=(*notes, *found.notes))


def _current(file: Path, kind: type[Beside]) -> tuple[Beside | None, tuple[str, ...]]:
    """A record beside the run's results if it counts, or else a note if it counts no more."""
    results = file.with_name(RESULTS)
    if not results.exists():
        return None, ()
    found, stale = read_current(file, kind, read_results(results))
    return found, (f"left out: {stale}",) if stale else ()


def _of_threshold(found: Thresholded) -> Correction:
    name, from_ = found.recalibration_name, found.promise.chosen.threshold
    return Correction(found.recalibration, name, from_, found.made_from.weights)


def parse_confidence(text: str) -> float:
    """A confidence as a person writes it: 0.9 or 90%."""
    try:
        value = parse_fraction(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        meant = f"; for {text} percent write {text}%" if 1 < value <= 100 and not text.endswith("%") else ""
        raise InputError(
            f"not_sure_below (--not-sure-below) is {text}; it must be a confidence such as 0.9 or 90%, or the word "
            f"{THRESHOLD}{meant}"
        )
    return value
