"""Scores of one predictor: the probabilities of N images over K classes against their labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from counterpoint.errors import InputError
from counterpoint.metrics.checks import Floats, Integers, class_labels, probabilities, whole_numbers
from counterpoint.metrics.groups import Groups, groups_of

# A probability of 0 would make the NLL infinite. It counts as the smallest normal float32, which gives 87.3 nats.
SMALLEST_PROBABILITY = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, eq=False)
class ImageScores:
    """What each of N images contributes to the metrics; each field is an array (N,).

    Every metric can be computed from these arrays, for any set of images.

    >>> from counterpoint.metrics import image_scores
    >>> scores = image_scores([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    >>> scores.confidence.tolist(), scores.correct.tolist()
    ([0.9, 0.6], [True, False])
    """

    confidence: Floats  # of the most probable class (the first of equals)
    correct: NDArray[np.bool_]
    nll: Floats
    brier: Floats
    group_N: Integers | None = None
    """Which images belong together, such as those of one patient: they have equal numbers. None where there are no
    groups."""

    def __len__(self) -> int:
        return len(self.correct)

    @cached_property
    def groups(self) -> Groups | None:
        """None where there are none, and where each has one image."""
        return groups_of(self.group_N, len(self))

    def select(self, images: NDArray[np.integer]) -> "ImageScores":
        group_N = None if self.group_N is None else self.group_N[images]
        return ImageScores(self.confidence[images], self.correct[images], self.nll[images], self.brier[images], group_N)


Grid = Mapping[str, Sequence[ImageScores]]
"""For each corruption, the images' scores at each severity."""


def image_scores(probs_NK: ArrayLike, labels_N: ArrayLike, groups: ArrayLike | None = None) -> ImageScores:
    """The confidence, correctness, NLL and Brier score of each image.

    `probs_NK` holds each image's probabilities of the K classes, which sum to 1; `labels_N` holds the class numbers.
    `groups` (N,) says which images belong together, such as those of one patient, by equal whole numbers. Intervals
    then count a group as one draw.

    >>> from counterpoint.metrics import image_scores
    >>> image_scores([[0.9, 0.1], [0.4, 0.6]], [0, 0]).brier.round(2).tolist()
    [0.02, 0.72]
    """
    probs = probabilities(probs_NK, "probs_NK", ndim=2)
    labels = class_labels(labels_N, "labels_N", *probs.shape)
    return scores_of_checked(probs, labels, checked_groups(groups, len(probs)))


def checked_groups(groups: ArrayLike | None, images: int) -> Integers | None:
    return None if groups is None else whole_numbers(groups, "groups", images, of="group")


def scores_of_checked(probs_NK: Floats, labels_N: Integers, group_N: Integers | None = None) -> ImageScores:
    """`image_scores` of arrays that were checked."""
    rows_N, best_N = np.arange(len(labels_N)), probs_NK.argmax(axis=1)
    of_label_N = probs_NK[rows_N, labels_N]
    off_NK = probs_NK.copy()
    off_NK[rows_N, labels_N] -= 1
    return ImageScores(
        confidence=probs_NK[rows_N, best_N],
        correct=best_N == labels_N,
        # log(1 / p) instead of −log(p), so that a probability of 1 gives 0.0 and not −0.0.
        nll=np.log(1 / np.maximum(of_label_N, SMALLEST_PROBABILITY)),
        brier=np.square(off_NK, out=off_NK).sum(axis=1),
        group_N=group_N,
    )


def join_scores(parts: Sequence[ImageScores]) -> ImageScores:
    """The scores of the images of all `parts`. All have groups, of the same numbers, or none has."""
    names = [field.name for field in fields(ImageScores) if getattr(parts[0], field.name) is not None]
    return ImageScores(**{name: np.concatenate([getattr(part, name) for part in parts]) for name in names})


def grids_of(cells: Mapping[str, Sequence[Sequence[ImageScores]]]) -> list[Grid]:
    """Each predictor's grid, from the scores of all predictors in each cell: `cells[corruption][place][predictor]`."""
    predictors = len(next(iter(cells.values()))[0])
    return [{name: [cell[i] for cell in of_name] for name, of_name in cells.items()} for i in range(predictors)]


def images_of_cells(grid: Grid) -> int:
    """How many images each cell has; `InputError` if they differ, because then row i cannot be the same image."""
    images = {len(cell) for severities in grid.values() for cell in severities}
    if len(images) != 1:
        raise InputError(f"the cells have {sorted(images)} images; each must hold the same ones, in the same order")
    return images.pop()


def groups_of_cells(grid: Grid) -> Groups | None:
    """The groups of the cells' images, which are the same in each cell."""
    return next(iter(grid.values()))[0].groups


def require_same_groups(ours: Groups | None, other: Groups | None) -> None:
    """Raise unless two runs' images belong together in the same way."""
    if ours is not other and not (ours and other and np.array_equal(ours.group_N, other.group_N)):
        raise InputError("the runs have their images in different groups; both must have the same ones")


def error(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """The share of images whose most probable class is not the label. Of equal probabilities the first counts.

    `probs_NK` holds each image's probabilities of the K classes, which sum to 1; `labels_N` holds the class numbers.

    >>> from counterpoint.metrics import error
    >>> error([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    return float((~image_scores(probs_NK, labels_N).correct).mean())


def nll(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """Negative log-likelihood: −log of the label's probability in nats, averaged over images.

    `probs_NK` holds each image's probabilities of the K classes, which sum to 1; `labels_N` holds the class numbers.

    >>> from counterpoint.metrics import nll
    >>> round(nll([[0.9, 0.1], [0.4, 0.6]], [0, 0]), 3)
    0.511
    """
    return float(image_scores(probs_NK, labels_N).nll.mean())


def brier(probs_NK: ArrayLike, labels_N: ArrayLike) -> float:
    """Brier score: the squared error summed over the classes (Brier 1950: 0 to 2), averaged over images.

    `probs_NK` holds each image's probabilities of the K classes, which sum to 1; `labels_N` holds the class numbers.

    >>> from counterpoint.metrics import brier
    >>> round(brier([[0.9, 0.1], [0.4, 0.6]], [0, 0]), 3)
    0.37
    """
    return float(image_scores(probs_NK, labels_N).brier.mean())
