"""The lowest confidence threshold above which the error of what is kept is below a target, with 95 % confidence.

The thresholds that can be chosen are a grid that was fixed before any image was seen. Images that are used for nothing
else decide how far down the grid one can go: from a start that other images suggested, each next lower threshold is
tried until one fails. A threshold passes if the exact upper bound on its error (Clopper & Pearson 1934) is below the
target.

Why the promise holds, although the last that passes is chosen after looking: grid and start do not depend on these
images, so that given how many of them a threshold keeps, the number of wrong ones is binomial, and a threshold whose
error is not below the target passes with a chance of at most 5 %. None of those can be chosen unless the first of them
on the way passes, and which one is the first is not random: so the chance of choosing any is at most 5 % too, however
long the grid and however the error changes with confidence. This is fixed-sequence testing (Maurer, Hothorn & Lehmacher
1995; Angelopoulos, Bates, Candès, Jordan & Lei 2021, "Learn then Test", with an order learned on other images). A bound
for all thresholds at once (Bonferroni, or the union bound of Geifman & El-Yaniv 2017) is valid as well, but without an
error needs 2.7 times as many images.

Images of one group, such as those of one patient, are no independent draws, and their number of wrong ones is not
binomial. One image of each group is: so one is drawn from each, at random and without regard to its score, and all the
above holds for these. The promise is then for an image drawn in the same way from a new group (Dunn, Wasserman & Ramdas
2022), in which each group counts once, however many images it has.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr, betaincinv, stdtr

from counterpoint.errors import InputError, shown
from counterpoint.metrics.checks import Floats, Integers, confidence_and_correct
from counterpoint.metrics.groups import Groups, are_enough, groups_of
from counterpoint.records.threshold import Promise, Tried, Verdict

Counted = Literal["images", "groups"]

RISK = 0.05
"""The chance that a promise is wrong, over random draws of the images that it was made on."""

# Hundredths, and beyond 0.99 nine steps per decade of doubt: networks often have a confidence above 0.99 for most
# images.
_NEAR_ONE = [round(1 - step * 10.0**-digits, digits) for digits in range(3, 10) for step in range(9, 0, -1)]
GRID: Floats = np.array([*(step / 100 for step in range(100)), *_NEAR_ONE])[::-1]
"""The thresholds that there are to choose from, the highest first. The last one, 0, keeps everything."""

_UP = 1.005  # three digits of a smallest promise are rounded up, so that it is within reach as shown


def likely_start(confidence: ArrayLike, correct: ArrayLike, target: float, images: int) -> float:
    """The threshold that is most likely to be proved on `images` other images, judging by these images.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. The
    error at a threshold is estimated from the images here, with half a wrong image added, because a few right images
    prove little.

    >>> from counterpoint.metrics import likely_start
    >>> likely_start([0.5] * 50 + [0.9] * 50, [False] * 50 + [True] * 50, target=0.1, images=100) > 0.5
    True
    """
    check_target(target)
    kept_G, wrong_G, total = _counts(confidence, correct)
    there_G = np.round(kept_G * images / total).astype(np.int64)
    # Each of the numbers of wrong images with which a threshold would pass. There are none where it keeps too few.
    passing_G = (bdtr(np.arange(math.ceil(target * images)), there_G[:, None], target) < RISK).sum(axis=1)
    error_G = (wrong_G + 0.5) / (kept_G + 1)
    chance_G = np.where(passing_G > 0, bdtr(np.maximum(passing_G - 1, 0), there_G, error_G), 0.0)
    return float(GRID[np.argmax(chance_G)])


def lowest_threshold(
    confidence: ArrayLike, correct: ArrayLike, target: float, start: float, groups: ArrayLike | None = None
) -> Promise:
    """The lowest threshold that promises an error below `target` for the predictions that are kept.

    `confidence` (N,) holds numbers from 0 to 1, and `correct` (N,) holds booleans or 0 and 1: one entry per image. The
    promise holds with 95 % confidence. The search goes down from the threshold `start`, which must not depend on these
    images; `likely_start` finds one on other images. `InputError` is raised if not even `start` can be promised. The
    images must be independent draws of the images that the promise is for.

    If they are not, because images belong together, such as those of one patient, `groups` (N,) says which do, by equal
    whole numbers. Then one image is drawn from each group, and the promise is for an image drawn so from a new group.

    >>> from counterpoint.metrics import lowest_threshold
    >>> confidence, correct = [0.5] * 100 + [0.9] * 100, [True, False] * 50 + [True] * 100
    >>> promise = lowest_threshold(confidence, correct, target=0.05, start=0.9)
    >>> promise.chosen.threshold > 0.5, promise.coverage
    (True, 0.5)
    """
    check_target(target)
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    together = groups_of(groups, len(confidence_N))
    counted: Counted = "images" if together is None else "groups"
    if together is not None:
        drawn_N = together.one_image_of_each()
        confidence_N, correct_N = confidence_N[drawn_N], correct_N[drawn_N]
    kept_G, wrong_G, total = _counts(confidence_N, correct_N)
    refuse_too_few(total, target, counted=counted)
    first = _place(start)
    # The chance of no more wrong images, if the error were the target: below 5 % where the upper bound is below it.
    fails_G = bdtr(wrong_G, kept_G, target) >= RISK
    failed = first + int(np.flatnonzero(np.append(fails_G[first:], True))[0])

    def tried(place: int) -> Tried:
        kept, wrong = int(kept_G[place]), int(wrong_G[place])
        return Tried(float(GRID[place]), kept, wrong, error_bound(kept, wrong))

    if failed == first:
        raise _not_reached(tried(first), target, total, counted)
    low, high = _coverage_bounds(int(kept_G[failed - 1]), total)
    return Promise(
        target=target,
        images=total,
        grid=len(GRID),
        start=tried(first),
        chosen=tried(failed - 1),
        refused=tried(failed) if failed < len(GRID) else None,
        coverage_low=low,
        coverage_high=high,
        drawn_from=None if together is None else together.images,
    )


def smallest_promise(images: int) -> float:
    """The smallest error that so many images can show, if none of them is wrong."""
    return float(1 - RISK ** (1 / images))


def refuse_too_few(images: int, target: float, set_apart: int = 0, counted: Counted = "images") -> None:
    """Raise where so many images could not show such an error even if none of them were wrong. A person who counts
    the validation images finds also those that were `set_apart`, so the error names them. With groups, one image of
    each counts.
    """
    if (smallest := smallest_promise(images)) >= target:
        one = counted.removesuffix("s")
        others = f"validation {one} chooses" if set_apart == 1 else f"{set_apart:,} validation {counted} choose"
        notes = ["one image of each counts"] if counted == "groups" else []
        notes += [f"the other {others} which threshold is tried first"] if set_apart else []
        apart = f" ({'; '.join(notes)})" if notes else ""
        raise InputError(
            f"an error below {_percent(target)} cannot be promised with {images:,} {counted}{apart}: even if "
            f"none of them were wrong, only an error below {_percent(_UP * smallest)} could be; use "
            f"more validation {counted}, or a higher target"
        )


def error_bound(kept: int, wrong: int) -> float:
    """The exact upper bound on an error, which is too low with a chance of at most 5 %. Of no images it is 1."""
    return float(betaincinv(wrong + 1, kept - wrong, 1 - RISK)) if wrong < kept else 1.0


def verdict(kept: int, wrong: int, target: float) -> Verdict:
    """Whether images keep the promise that the error of the kept ones is below the target."""
    if wrong <= target * kept:
        return "holds"
    chance_of_as_many = 1 - float(bdtr(wrong - 1, kept, target))
    return "breaks" if chance_of_as_many < RISK else "unclear"


def verdict_over(groups: Groups, kept_N: ArrayLike, wrong_N: ArrayLike, target: float) -> Verdict:
    """As `verdict`, where the images are in groups. `kept_N` and `wrong_N` say which images are kept, and which of the
    kept ones are wrong.

    How much the wrong images of a group exceed what the target allows is one draw, and Student's test asks whether
    their mean is above 0. Too few groups for an interval show nothing.
    """
    kept, wrong = np.asarray(kept_N, np.float64), np.asarray(wrong_N, np.float64)
    if wrong.sum() <= target * kept.sum():
        return "holds"
    excess_G = groups.sums(wrong - target * kept)
    error = float(excess_G.std(ddof=1)) / math.sqrt(len(excess_G)) if are_enough(groups) else math.inf
    by_chance = 1 - float(stdtr(len(excess_G) - 1, excess_G.mean() / error)) if error else 0.0
    return "breaks" if by_chance < RISK else "unclear"


def _counts(confidence: ArrayLike, correct: ArrayLike) -> tuple[Integers, Integers, int]:
    """For each threshold how many images are at least as confident, how many of these are wrong; and all images."""
    confidence_N, correct_N = confidence_and_correct(confidence, correct)
    wrong_N = 1 - correct_N.astype(np.int64)
    order = np.argsort(confidence_N)
    below_G = np.searchsorted(confidence_N[order], GRID, side="left")
    wrong_from_N = np.append(np.cumsum(wrong_N[order][::-1])[::-1], 0)
    return len(wrong_N) - below_G, wrong_from_N[below_G], len(wrong_N)


def _coverage_bounds(kept: int, total: int) -> tuple[float, float]:
    """Exact, and with 95 % for all thresholds of the grid at once: which one was chosen depends on these images."""
    tail = RISK / 2 / len(GRID)
    low = betaincinv(kept, total - kept + 1, tail) if kept else 0.0
    high = betaincinv(kept + 1, total - kept, 1 - tail) if kept < total else 1.0
    return float(low), float(high)


def check_target(target: float) -> None:
    if not isinstance(target, int | float | np.floating) or not 0 < target < 1:
        raise InputError(
            f"the target is {shown(repr(target))}; an error must be above 0 and below 1, such as 0.01 for 1 %"
        )


def _place(start: float) -> int:
    found = np.flatnonzero(start == GRID)
    if not found.size:
        raise InputError(
            f"the start is {start}, which is not a threshold of the grid; `likely_start` gives one that is"
        )
    return int(found[0])


def _not_reached(first: Tried, target: float, images: int, counted: Counted) -> InputError:
    return InputError(
        f"no threshold can be promised to keep the error below {_percent(target)}: at {first.threshold}, the likeliest "
        f"by other images, {first.wrong:,} of {first.kept:,} kept images are wrong, so their error may be "
        f"{_percent(first.upper)}; use a higher target, or more validation {counted} (with these {images:,} {counted}, "
        f"even if none were wrong, only an error below {_percent(_UP * smallest_promise(images))} could be promised)"
    )


def _percent(share: float) -> str:
    """With three digits, because a target can be far below 1 %."""
    return f"{100 * share:.3g} %"
