"""Why the average is better calibrated than the members: measured on corrupted digits and on CIFAR-10-C."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from counterpoint.experiments.schedules import find_schedule
from counterpoint.metrics import reliability_bins
from counterpoint.reproduction.rows import RowRun, read_result
from figures.axes import Axes
from figures.sources import Shifted, Sources, corrupted_probs
from figures.svg import Drawing

_FEWEST = 100  # images in a bin that is drawn
_PERCENT = {value / 100: str(value) for value in range(0, 101, 20)}
_RUNS = {
    "single": "single network",
    "batch-ensemble": "BatchEnsemble",
    "single-am-bern-0.875": "single network, AugMix",
    "am-bern-0.875": "BatchEnsemble, diverse AugMix",
}


@dataclass(frozen=True)
class Agreement:
    """Over some images: their share, and confidence and accuracy of a member (in the mean) and of the average."""

    share: float
    member: tuple[float, float]
    average: tuple[float, float]


def agreements(shifted: Shifted) -> tuple[Agreement, Agreement]:
    """Where all members predict one class, and where they do not."""
    predicted_MN = shifted.probs_MNK.argmax(axis=2)
    same_N = (predicted_MN == predicted_MN[0]).all(axis=0)
    return _agreement(shifted, same_N), _agreement(shifted, ~same_N)


def average(sources: Sources) -> Drawing:
    """Reliability of members and ensemble on corrupted digits, and what both say where the members disagree."""
    shifted = corrupted_probs(sources.ensemble)
    drawing = Drawing(680, 360, "Reliability of four members and their average, and confidence where members disagree")
    axes = Axes(52, 54, 250, 250, (0, 1), (0, 1))
    axes.draw(drawing, _PERCENT, _PERCENT, "confidence, %", "accuracy, % (corrupted digits)")
    drawing.path([axes.place(0, 0), axes.place(1, 1)], "dashed")
    for probs_NK in shifted.probs_MNK:
        drawing.path(_reliability(axes, probs_NK, shifted.labels_N), "warm thin")
    drawing.path(_reliability(axes, shifted.probs_MNK.mean(axis=0), shifted.labels_N), "blue thick")
    drawing.text(64, 76, "the average", "blue-text strong")
    drawing.text(64, 93, "each member", "warm-text")
    agree, disagree = agreements(shifted)
    _bars(drawing, agree, "all members agree", 70)
    _bars(drawing, disagree, "the members disagree", 212)
    return drawing


def cifar_members(sources: Sources) -> Drawing:
    """ECE on CIFAR-10-C of each member, of their average, and of a single network, at the paper's schedule."""
    drawing = Drawing(640, 250, "ECE on CIFAR-10-C of single networks, of members, and of the members' average")
    axes = Axes(240, 40, 372, 150, (0, 0.2), (0, 4))
    marks = {value / 100: str(value) for value in (0, 5, 10, 15, 20)}
    axes.draw(drawing, marks, {}, "ECE on CIFAR-10-C, %", "")
    for row, (name, words) in enumerate(_RUNS.items()):
        result = read_result(sources.results, RowRun(f"cifar10/{name}", find_schedule("paper"), 0))
        if result is None or result.corrupted is None:
            raise ValueError(f"there is no result of cifar10/{name} on corrupted images in {sources.results}")
        found = result.corrupted.aggregates
        _, y = axes.place(0, 3.5 - row)
        drawing.line(axes.left, y, axes.left + axes.width, y)
        drawing.text(axes.left - 14, y + 4, words, "end")
        for member in found.members or ():
            drawing.dot(axes.place(member["by-corruption"].ece_width15, 0)[0], y, 5, "warm-fill")
        x, _ = axes.place(found.ensemble["by-corruption"].ece_width15, 0)
        drawing.dot(x, y, 6, "blue-fill")
        drawing.text(x, y - 10, f"{100 * found.ensemble['by-corruption'].ece_width15:.2f}", "small middle")
    drawing.dot(248, 22, 6, "blue-fill")
    drawing.text(260, 26, "the ensemble, or the single network", "small")
    drawing.dot(494, 22, 5, "warm-fill")
    drawing.text(506, 26, "each member", "small")
    return drawing


def _agreement(shifted: Shifted, chosen_N: NDArray[np.bool_]) -> Agreement:
    members_MNK, labels_N = shifted.probs_MNK[:, chosen_N], shifted.labels_N[chosen_N]
    return Agreement(float(chosen_N.mean()), _rates(members_MNK, labels_N), _rates(members_MNK.mean(axis=0), labels_N))


def _rates(probs: NDArray[np.float64], labels_N: NDArray[np.int64]) -> tuple[float, float]:
    """Mean confidence and accuracy."""
    return float(probs.max(axis=-1).mean()), float((probs.argmax(axis=-1) == labels_N).mean())


def _reliability(
    axes: Axes, probs_NK: NDArray[np.float64], labels_N: NDArray[np.int64]
) -> Sequence[tuple[float, float]]:
    bins = reliability_bins(probs_NK.max(axis=1), probs_NK.argmax(axis=1) == labels_N, bins=10)
    rows = zip(bins.confidence, bins.accuracy, bins.count, strict=True)
    return [axes.place(confidence, accuracy) for confidence, accuracy, count in rows if count >= _FEWEST]


def _bars(drawing: Drawing, group: Agreement, words: str, top: float) -> None:
    """Confidence and accuracy side by side, of a member and of the average."""
    left, width = 434, 130
    drawing.text(350, top - 20, words, "strong")
    drawing.text(350, top - 3, f"{100 * group.share:.0f} % of the corrupted digits", "small")
    for row, (name, rates) in enumerate((("a member", group.member), ("the average", group.average))):
        y = top + 10 + row * 46
        drawing.text(350, y + 21, name, "warm-text" if row == 0 else "blue-text")
        for place, (label, rate) in enumerate(zip(("confidence", "accuracy"), rates, strict=True)):
            kind = ("warm-fill", "blue-fill")[row] if label == "confidence" else "pale-fill"
            drawing.box(left, y + place * 17, width * rate, 14, kind)
            drawing.text(left + width * rate + 6, y + place * 17 + 11, f"{100 * rate:.0f} %  {label}", "small")
