"""A sentence of the verdict with its rank, and the sets of images that sentences are about."""

from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum

from counterpoint.records.figures import Figures, Summary
from counterpoint.records.images import Images, Shift
from counterpoint.report.bins import wilson_interval
from counterpoint.report.run import HEADLINE, ReportedRun, whole_scores
from counterpoint.report.suites import ShiftedRun, same_cells, suites_of

_SPACE = "\N{NO-BREAK SPACE}"
CLEAN = "clean images"


class Rank(IntEnum):
    """What comes first: a network that may have learned nothing. Then bad news about the calibration of two runs.

    Of three or more runs the lowest figures come first. Otherwise the verdict could leave out the best run.
    """

    MAY_BE_GUESSING = -2
    OF_ALL = -1
    WORSE_CALIBRATED = 0
    NOT_TOLD_APART = 1
    UNDER_SHIFT = 2
    CLEAN = 3
    BOTH_RECALIBRATED = 4
    CONFIDENCE = 5
    RECALIBRATED = 6
    LITTLE_NEWS = 7


@dataclass(frozen=True)
class Sentence:
    rank: Rank
    text: str


@dataclass(frozen=True)
class Measured:
    """One run on one set of images."""

    on: str  # the images, in words
    suite: str  # empty for clean images
    key: Hashable  # equal for runs on the same images
    images: int  # the cells of a suite repeat them
    draws: int  # how many of these are independent of each other, at least
    figures: Figures
    floor: float | None
    debiased: tuple[float, float, float] | None  # the ECE with its interval

    @property
    def accuracy(self) -> float:
        return 1 - self.figures.error

    @property
    def leaning(self) -> str:
        """Whether the confidence leaves the interval of the accuracy; empty where it stays inside."""
        low, high = wilson_interval(self.accuracy, self.draws)
        confidence = self.figures.mean_confidence
        return "over-confident" if confidence > high else "under-confident" if confidence < low else ""


def measured(run: ReportedRun) -> list[Measured]:
    """The run on clean images and on each suite of test images."""
    on = run.results.evaluated_on
    sets = [_set(CLEAN, "", on, on, run.clean)]
    for shifted in suites_of(run):
        if shifted.figures.part == "test":
            summary = shifted.aggregate(HEADLINE)
            sets.append(_set(suite_in_words(shifted), shifted.suite, same_cells(shifted), shifted.figures, summary))
    return sets


def suite_in_words(shifted: ShiftedRun) -> str:
    if shifted.is_own or (shifted.is_given and not shifted.is_papers):
        return f"the shifted images of “{shifted.called}”"
    return "shifted images" if shifted.is_given else "corrupted images"


def _set(on: str, suite: str, key: Hashable, images: Images | Shift, summary: Summary) -> Measured:
    estimate = summary.honest.ensemble.get("ece_width15") if summary.honest else None
    debiased = (estimate.debiased, estimate.low, estimate.high) if estimate else None
    floor = whole_scores(summary).get("ece_width15_floor")
    return Measured(on, suite, key, images.images, images.draws, summary.ensemble, floor, debiased)


def counted_images(images: int, on: str) -> str:
    """So many of the images. The cells of a suite hold the same ones under each corruption."""
    return f"{images:,} {on.removeprefix('the ')}" + (" per cell" if on == "corrupted images" else "")


def percents(*fractions: float) -> list[str]:
    """Percentages with one digit, or with more where different values would look the same."""
    for digits in (1, 2, 3):
        texts = [f"{100 * fraction:.{digits}f}{_SPACE}%" for fraction in fractions]
        if len(set(texts)) == len(set(fractions)):
            break
    return texts
