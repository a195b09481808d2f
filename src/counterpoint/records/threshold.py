"""threshold.json: from which confidence on a run's predictions can be kept, as `counterpoint threshold` found it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from counterpoint.records.compared import all_but
from counterpoint.records.figures import Count, Fraction
from counterpoint.records.images import MadeFrom, OutsideImages, Shift
from counterpoint.records.recalibrated import Recalibration

Verdict = Literal["holds", "unclear", "breaks"]
"""What images show about a promise: the error of those kept is not above the target, it is but could be so by chance,
or it is above the target by more than chance (a one-sided test at 5 %: an exact one, or Student's over groups).
"""


@dataclass(frozen=True)
class Tried:
    """How many images a threshold keeps, how many of these are wrong, and what that proves.

    `upper` is the exact 95 % upper bound on the error of what is kept, at this threshold alone.
    """

    threshold: Fraction
    kept: Count
    wrong: Count
    upper: Fraction

    def problem(self) -> str:
        return _too_many("wrong", self.wrong, "kept", self.kept)


@dataclass(frozen=True, kw_only=True)
class Promise:
    """The lowest threshold whose error is below the target with 95 % confidence, and on what this rests.

    Of all that is known, the target alone bounds the error at `chosen`: it is the lowest of several that were tried, so
    that its own upper bound says too much. The interval of the coverage holds for the whole grid, with 95 %.
    """

    target: Fraction
    images: Count
    grid: Count  # how many thresholds could have been chosen
    start: Tried  # the highest that was tried
    chosen: Tried
    refused: Tried | None  # the next lower one; None if everything is kept
    coverage_low: Fraction
    coverage_high: Fraction
    drawn_from: Count | None = None
    """Where images belong together, the images are drawn, one from each group, of as many. The promise is then for an
    image that is drawn in the same way from a new group. None where each image is a draw of its own."""

    @property
    def coverage(self) -> float:
        return self.chosen.kept / self.images

    def problem(self) -> str:
        return _too_many("chosen.kept", self.chosen.kept, "images", self.images)


@dataclass(frozen=True)
class Checked:
    """What became of the promise on other images."""

    images: Count
    kept: Count
    wrong: Count
    verdict: Verdict

    @property
    def coverage(self) -> float:
        return self.kept / self.images

    @property
    def error(self) -> float | None:
        """Of what is kept; None where nothing is."""
        return self.wrong / self.kept if self.kept else None

    def problem(self) -> str:
        if not self.images:
            return "images is 0, and must be 1 or more"
        return _too_many("kept", self.kept, "images", self.images) or _too_many("wrong", self.wrong, "kept", self.kept)


@dataclass(frozen=True)
class CheckedShift:
    """What became of the promise on a set of shifted images, at each of its severities."""

    shift: Shift
    cells: tuple[Checked, ...]

    def problem(self) -> str:
        return self.shift.wrong_severities("cells", self.cells)


@dataclass(frozen=True, kw_only=True)
class KeptOutside(OutsideImages):
    """How many images of none of the classes are kept. Each of them is a mistake, and no promise covers it."""

    kept: Count

    @property
    def share(self) -> float:
        return self.kept / self.images

    def problem(self) -> str:
        if not self.images:
            return "images is 0, and must be 1 or more"
        return _too_many("kept", self.kept, "images", self.images)


@dataclass(frozen=True, kw_only=True)
class Thresholded:
    """A promise, the recalibration that it was made with, and what other images say of it.

    The promise is for confidences with this very recalibration. It was fitted on `fitted_images` of the validation
    images, drawn with a fixed seed, and the threshold was chosen on the others.
    """

    made_from: MadeFrom
    command: str
    finished: str
    promise: Promise
    recalibration: Recalibration
    recalibration_name: str  # "none" where the confidences are the network's own
    fitted_images: Count
    test: Checked | None  # the clean test images, where there are logits of them
    cells: Mapping[str, tuple[Checked, ...]]
    """The test images under each corruption, at each of the severities that `made_from` names."""
    shifts: Mapping[str, CheckedShift] = field(default_factory=dict)
    """Other sets of shifted images, by name."""
    outside: Mapping[str, KeptOutside] = field(default_factory=dict)
    """Sets of images of none of the classes, by name."""

    def __repr__(self) -> str:
        """The promise. What all cells say of it would be hundreds of lines."""
        promise = self.promise
        return f"<Thresholded: error below {promise.target:.2%} from a confidence of {promise.chosen.threshold:g} on>"

    @property
    def checked_on(self) -> Mapping[str, Shift]:
        return {name: checked.shift for name, checked in self.shifts.items()}

    def without(self, shifts: Collection[str], outside: Collection[str]) -> "Thresholded":
        """Without what was found on these sets of images."""
        return replace(self, shifts=all_but(shifts, self.shifts), outside=all_but(outside, self.outside))

    def problem(self) -> str:
        if self.made_from.corrupted:
            return self.made_from.corrupted.wrong_cells(self.cells)
        return f"cells.{min(self.cells)} is not one of the corruptions" if self.cells else ""


def _too_many(name: str, count: int, of: str, most: int) -> str:
    return f"{name} is {count}, and must be no more than {of}, which is {most}" if count > most else ""
